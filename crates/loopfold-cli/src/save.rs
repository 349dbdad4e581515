//! Writing an archive so that the old one is untouched until the new one is complete.

use anyhow::{Context as _, Result};
use loopfold::Fold;
use std::io::Write as _;
use std::path::Path;

/// Writes beside the file and renames; returns how many bytes. Whatever goes wrong
/// before the end, a full disk or a kill, leaves what was there.
pub(crate) fn save(fold: &Fold, path: &Path) -> Result<u64> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = || format!("{}", path.display());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".loopfold-").suffix(".tmp");
    #[cfg(unix)]
    {
        // As any other new file: the user's mask decides.
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).with_context(name)?;
    let mut output = std::io::BufWriter::new(file.as_file_mut());
    loopfold::archive::write(fold, &mut output).with_context(name)?;
    output.flush().with_context(name)?;
    drop(output);
    file.as_file().sync_all().with_context(name)?;
    let bytes = file.as_file().metadata().with_context(name)?.len();
    file.persist(path).map_err(|error| error.error).with_context(name)?;
    Ok(bytes)
}
