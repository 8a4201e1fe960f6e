//! To come.

mod decision;
