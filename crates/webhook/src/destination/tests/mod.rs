//! Tables of addresses, URLs and headers.

mod address;
mod headers;
mod url;
