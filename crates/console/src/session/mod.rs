//! The sessions of people who are signed in: what a browser has is a cookie, never a token.

mod cookie;
mod store;

pub(crate) use cookie::{Cookie, Cookies, digest, new_value};
pub(crate) use store::{Ended, IDLE, LONGEST, NewSession, Sessions, Stored, Tokens};
