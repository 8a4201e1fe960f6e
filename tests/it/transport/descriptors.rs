//! Open files: each connection uses one, and shells commonly permit 1,024.

use crate::faults::process::{Folder, Service};

#[test]
fn the_limit_is_raised_at_start() {
    let folder = Folder::new("open-files");
    let service = Service::with_open_files(700, &folder);
    let [now, most] = service.open_files();
    assert!(most > 700, "the hard limit is too low for this test: {most}");
    assert_eq!(now, most);
}
