//! Generated from the migrations.
