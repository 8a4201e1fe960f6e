//! Open files: each connection takes one, and shells commonly leave 1,024.

use crate::faults::process::{Folder, Service};

#[test]
fn the_limit_is_raised_at_start() {
    let folder = Folder::new("open-files");
    let service = Service::with_open_files(700, &folder);
    let [now, most] = service.open_files();
    assert!(most > 700, "nothing is left to raise here: {most}");
    assert_eq!(now, most);
}
