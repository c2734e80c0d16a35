//! A disk that forgets: an SQLite VFS that passes writes to the files only when they are synced.
//!
//! Writes are kept in memory, where every connection of this process sees them, as it would see the page cache of the operating system.
//! `xSync` writes them into the real file. So the real files contain at any moment the state that a power cut would leave, and copying them
//! simulates the power cut.
#![expect(unsafe_code, reason = "a VFS is a table of C functions")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, Once, PoisonError};

use rusqlite::ffi;

/// The name under which the VFS is registered.
pub(crate) const NAME: &CStr = c"unsynced";

/// Every file that was opened, by path. One lock for all, so that a copy sees no half-done sync.
static FILES: LazyLock<Mutex<HashMap<String, Unsynced>>> = LazyLock::new(Mutex::default);

/// Files and pieces of their contents: a page that holds one of them cannot be read.
static SCRATCHED: Mutex<Vec<(String, Vec<u8>)>> = Mutex::new(Vec::new());

/// Makes every page of a file with these bytes unreadable from now on.
pub(crate) fn scratch(path: &Path, bytes: &[u8]) {
    let path = path.to_string_lossy().into_owned();
    SCRATCHED.lock().unwrap_or_else(PoisonError::into_inner).push((path, bytes.to_vec()));
}

fn is_scratched(path: &str, page: &[u8]) -> bool {
    let scratched = SCRATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut pieces = scratched.iter().filter(|(of, _)| of == path);
    pieces.any(|(_, piece)| page.windows(piece.len()).any(|window| window == piece))
}

/// The written bytes, and the ranges that are not on disk yet.
#[derive(Default)]
struct Unsynced {
    bytes: Vec<u8>,
    dirty: Vec<Range<usize>>,
    resized: bool,
    /// The errors returned by writes and syncs.
    refusals: Refusals,
}

/// The failures of a disk.
#[derive(Clone, Copy, Default)]
pub(crate) struct Refusals {
    /// It has no room.
    pub(crate) is_full: bool,
    /// It cannot sync.
    pub(crate) fails_to_sync: bool,
}

/// The file handle that SQLite sees; the real one follows it in the same allocation.
#[repr(C)]
struct File {
    head: ffi::sqlite3_file,
    path: *mut String,
}

/// Registers the VFS, once; returns its name.
pub(crate) fn register() -> String {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the usual VFS lives as long as the process, and so does the leaked copy of it.
        let code = unsafe {
            let usual = ffi::sqlite3_vfs_find(std::ptr::null());
            let mut vfs = *usual;
            vfs.szOsFile += size_of::<File>() as c_int;
            vfs.zName = NAME.as_ptr();
            vfs.pNext = std::ptr::null_mut();
            vfs.xOpen = Some(open);
            vfs.xDelete = Some(delete);
            ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0)
        };
        assert_eq!(code, ffi::SQLITE_OK, "registered");
    });
    NAME.to_string_lossy().into_owned()
}

/// Copies the synced state of a database.
pub(crate) fn cut_power(from: &Path, to: &Path) {
    let _files = files();
    for suffix in ["", "-wal"] {
        let (mut source, mut copy) = (from.as_os_str().to_owned(), to.as_os_str().to_owned());
        source.push(suffix);
        copy.push(suffix);
        if Path::new(&source).exists() {
            std::fs::copy(source, copy).expect("copied");
        }
    }
}

/// Makes the files of a database fail, or work again.
pub(crate) fn refuse(database: &Path, refusals: Refusals) {
    for suffix in ["", "-wal"] {
        let path = format!("{}{suffix}", database.display());
        files().entry(path).or_default().refusals = refusals;
    }
}

fn files() -> MutexGuard<'static, HashMap<String, Unsynced>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe fn usual() -> *mut ffi::sqlite3_vfs {
    // SAFETY: it was found before, and is never unregistered.
    unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) }
}

/// Returns the real file behind ours.
unsafe fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: SQLite gave `szOsFile` bytes, ours and the real file's.
    unsafe { file.cast::<File>().add(1).cast() }
}

/// Executes work on the contents of a file.
unsafe fn with<T>(file: *mut ffi::sqlite3_file, work: impl FnOnce(&mut Unsynced) -> T) -> T {
    // SAFETY: `open` put a path there, and `close` takes it away last.
    let path = unsafe { &*(*file.cast::<File>()).path };
    work(files().entry(path.clone()).or_default())
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are SQLite's own; the real file gets its own part of the memory.
    unsafe {
        (*file).pMethods = std::ptr::null();
        let code = (*usual()).xOpen.expect("opens")(usual(), name, real(file), flags, out);
        if code != ffi::SQLITE_OK {
            return code;
        }
        let path = match name.is_null() {
            true => format!("temporary {file:p}"),
            false => CStr::from_ptr(name).to_string_lossy().into_owned(),
        };
        let read = || Unsynced { bytes: std::fs::read(&path).unwrap_or_default(), ..Unsynced::default() };
        files().entry(path.clone()).or_insert_with(read);
        (*file.cast::<File>()).path = Box::into_raw(Box::new(path));
        (*file).pMethods = &raw const METHODS;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: the name is a C string of SQLite's.
    unsafe {
        let path = CStr::from_ptr(name).to_string_lossy().into_owned();
        files().remove(&path);
        (*usual()).xDelete.expect("deletes")(usual(), name, sync)
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Version 2 has shared memory and no memory-mapped reads, which would pass by the contents kept here.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the path is ours and not used afterwards.
    unsafe {
        let code = (*(*real(file)).pMethods).xClose.expect("closes")(real(file));
        drop(Box::from_raw((*file.cast::<File>()).path));
        code
    }
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, into: *mut c_void, amount: c_int, at: i64) -> c_int {
    let (amount, at) = (amount as usize, at as usize);
    // SAFETY: SQLite gives room for `amount` bytes.
    let into = unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), amount) };
    let copied = unsafe {
        with(file, |file| {
            let from = file.bytes.get(at..).unwrap_or_default();
            let count = from.len().min(amount);
            into[..count].copy_from_slice(&from[..count]);
            count
        })
    };
    into[copied..].fill(0);
    // SAFETY: `open` put a path there, and `close` takes it away last.
    let path = unsafe { &*(*file.cast::<File>()).path };
    if is_scratched(path, into) {
        return ffi::SQLITE_IOERR_READ;
    }
    if copied == amount { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_SHORT_READ }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    amount: c_int,
    at: i64,
) -> c_int {
    let (amount, at) = (amount as usize, at as usize);
    // SAFETY: SQLite gives `amount` bytes.
    let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), amount) };
    unsafe {
        if with(file, |file| file.refusals.is_full) {
            return ffi::SQLITE_FULL;
        }
        with(file, |file| {
            if file.bytes.len() < at + amount {
                file.bytes.resize(at + amount, 0);
                file.resized = true;
            }
            file.bytes[at..at + amount].copy_from_slice(from);
            file.dirty.push(at..at + amount);
        });
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    unsafe {
        with(file, |file| {
            file.bytes.truncate(size as usize);
            file.resized = true;
        });
    }
    ffi::SQLITE_OK
}

/// Writes the unsynced ranges into the real file.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: the real file is open, and the ranges lie within the bytes.
    unsafe {
        if with(file, |file| file.refusals.fails_to_sync) {
            return ffi::SQLITE_IOERR_FSYNC;
        }
        let real = real(file);
        let methods = &*(*real).pMethods;
        with(file, |file| {
            for range in file.dirty.drain(..) {
                let range = range.start..range.end.min(file.bytes.len());
                if let Some(bytes) = file.bytes.get(range.clone()).filter(|bytes| !bytes.is_empty()) {
                    let (from, amount, at) =
                        (bytes.as_ptr().cast(), bytes.len() as c_int, range.start as i64);
                    let code = methods.xWrite.expect("writes")(real, from, amount, at);
                    assert_eq!(code, ffi::SQLITE_OK, "the real file takes it");
                }
            }
            if std::mem::take(&mut file.resized) {
                methods.xTruncate.expect("truncates")(real, file.bytes.len() as i64);
            }
        });
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: SQLite gives room for the size.
    unsafe { *size = with(file, |file| file.bytes.len() as i64) };
    ffi::SQLITE_OK
}

/// Hands calls on to the real file: locks and shared memory are the operating system's.
macro_rules! pass {
    ($($name:ident = $method:ident ( $($arg:ident: $type:ty),* ) -> $result:ty;)*) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $arg: $type)*) -> $result {
            // SAFETY: the real file is open, and its methods are those of the usual VFS.
            unsafe {
                let real = real(file);
                (*(*real).pMethods).$method.expect("the usual VFS has it")(real $(, $arg)*)
            }
        }
    )*};
}

pass! {
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(result: *mut c_int) -> c_int;
    file_control = xFileControl(op: c_int, arg: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int;
    shm_lock = xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int;
    shm_barrier = xShmBarrier() -> ();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
}
