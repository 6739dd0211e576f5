//! Disks that are full, or cannot be written.

use crate::up::mount::SmallDisk;
use crate::up::refused::check_refused;
use crate::up::run::{Run, mainstay};
use crate::up::{create, exists, text};
use expect_test::expect;
use std::io::Write as _;
use std::path::Path;

/// Takes all the room that is left, with a file. Whoever tries to start may have freed some.
fn fill(path: &Path) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    for size in [64 * 1024, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test]
async fn on_a_full_disk_it_says_so_and_with_room_again_everything_is_there() {
    let Some(disk) = SmallDisk::mount("mainstay up on a full disk", 32) else { return };
    let state = disk.path().join("state");
    let arguments = ["--data", text(&state)];
    let (mut run, kubeconfig) = Run::up(&arguments);
    create(&kubeconfig, "kept").await;
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));

    // Where nothing new is to be written, a full disk would do.
    std::fs::remove_file(&kubeconfig).unwrap();
    std::fs::write(state.join("lock"), "").unwrap();
    let (fresh, storeless) = (disk.path().join("fresh"), disk.path().join("storeless"));
    std::fs::create_dir(&storeless).unwrap();
    std::fs::copy(state.join("credentials.json"), storeless.join("credentials.json")).unwrap();
    let filler = disk.path().join("filler");
    fill(&filler);
    let up = |state: &Path| mainstay(&["up", "--listen", "127.0.0.1:0", "--data", text(state)]);
    check_refused(
        Run::start(up(&state)),
        &[(text(&state), "DIR")],
        &expect![[r#"
            error: cannot write the kubeconfig DIR/kubeconfig
              No space left on device
              unchanged: all objects
              next: make room on the disk, or: mainstay up --kubeconfig FILE writes it elsewhere
        "#]],
    );
    fill(&filler);
    check_refused(
        Run::start(up(&fresh)),
        &[(text(&fresh), "DIR")],
        &expect![[r#"
            error: keeping credentials in DIR/credentials.json
              No space left on device
              unchanged: the objects in DIR
              next: make room on the disk, or: mainstay up --data DIR keeps the state elsewhere, --memory keeps none
        "#]],
    );
    fill(&filler);
    check_refused(
        Run::start(up(&storeless)),
        &[(text(&storeless), "DIR")],
        &expect![[r#"
            error: cannot use DIR as a store
              No space left on device
              unchanged: everything in DIR
              next: make room on the disk, or: mainstay up --data DIR keeps the state elsewhere, --memory keeps none
        "#]],
    );
    std::fs::remove_file(&filler).unwrap();
    let (_run, kubeconfig) = Run::up(&arguments);
    assert!(exists(&kubeconfig, "kept").await);
    create(&kubeconfig, "more").await;
    let (_run, kubeconfig) = Run::up(&["--data", text(&fresh)]);
    create(&kubeconfig, "first").await;
    let (_run, kubeconfig) = Run::up(&["--data", text(&storeless)]);
    create(&kubeconfig, "first").await;
}

#[test]
fn a_disk_that_cannot_be_written_is_refused() {
    let Some(disk) = SmallDisk::mount("mainstay up on a disk that is read only", 16) else { return };
    disk.make_read_only();
    let state = disk.path().join("state");
    check_refused(
        Run::start(mainstay(&["up", "--listen", "127.0.0.1:0", "--data", text(&state)])),
        &[(text(&state), "DIR")],
        &expect![[r#"
            error: cannot keep state in DIR
              Read-only file system
              next: mainstay up --data DIR keeps the state elsewhere, --memory keeps none
        "#]],
    );
}
