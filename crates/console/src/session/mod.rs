//! The sessions of signed-in people. A browser has only a cookie, never a token.

mod cookie;
pub(crate) mod credential;
mod opened;
mod row;
mod store;
mod turn;

pub(crate) use cookie::{Cookie, Cookies, digest, new_value};
pub(crate) use store::{EndedSessions, IDLE, LONGEST, NewSession, Sessions, Stored, Tokens};
pub(crate) use turn::{LONGEST_TURN, Turn};
