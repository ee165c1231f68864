//! Removes what processes left that were killed before a session of theirs had a log.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use session::SessionId;

use crate::disk::{Disk, How, Leased};
use crate::names::Names;

/// A younger lock may be that of a session being created. Trying it could make its creator see it held.
const YOUNG: Duration = Duration::from_secs(60);

pub(crate) fn sweep(disk: &dyn Disk, names: impl Fn(SessionId) -> Names) {
    let Ok(all) = disk.names() else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let orphans = all.iter().filter_map(|name| Names::id_of_lock(name)).map(names).filter(|names| {
        let modified = disk.open(&names.lock(), How::Read).map(|lock| lock.as_opened().modified);
        has_no_log(disk, names) && modified.is_ok_and(|at| Duration::from_millis(at) + YOUNG < now)
    });
    // Nobody can hold up a process that lives: it has locked its own before it called it so.
    for spare in all.iter().filter(|name| Names::is_spare(name)) {
        drop(disk.lease(spare));
    }
    for orphan in orphans {
        // Dropping the lease takes the lock's name away.
        let Ok(Leased::Mine(_lease)) = disk.lease(&orphan.lock()) else { continue };
        if has_no_log(disk, &orphan)
            && let Err(error) = disk.remove(&orphan.unfinished())
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(file = orphan.unfinished(), %error, "an unfinished file could not be removed");
        }
    }
}

fn has_no_log(disk: &dyn Disk, names: &Names) -> bool {
    matches!(disk.open(&names.log(), How::Read), Err(error) if error.kind() == io::ErrorKind::NotFound)
}
