//! The data folder of `dev`, which does not depend on the working directory.

use std::path::PathBuf;

use authority_cli::Failure;
use authority_config::{Config, Sources};

/// Sets the data folder to the user's own, by the XDG Base Directory Specification, unless a setting
/// names another.
pub(super) fn apply(config: &mut Config, sources: &Sources) -> Result<(), Failure> {
    if sources.sets("data_dir")? {
        return Ok(());
    }
    let of = |name: &str| {
        let found = sources.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let base = of("XDG_DATA_HOME").or_else(|| Some(of("HOME")?.join(".local/share")));
    let base = base.ok_or_else(|| {
        Failure::usage(
            "no place for the data: set XDG_DATA_HOME or HOME to a folder, or give --data-dir",
        )
    })?;
    config.data_dir = base.join("agent-authority");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_users_unless_a_setting_names_another() {
        let folder = |named: Option<&str>, environment: &[(&str, &str)]| {
            let environment =
                environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let flags = named.map(|named| ("data_dir", named.to_owned())).into_iter().collect();
            let sources = Sources { environment: environment.collect(), flags, file: None };
            let mut config = Config::load(&sources).unwrap();
            apply(&mut config, &sources).ok().map(|()| config.data_dir.display().to_string())
        };
        let home = ("HOME", "/home/a");
        let own = Some("/home/a/.local/share/agent-authority".to_owned());
        assert_eq!(folder(None, &[home]), own);
        // The specification ignores relative paths.
        assert_eq!(folder(None, &[home, ("XDG_DATA_HOME", "data")]), own);
        let data = folder(None, &[home, ("XDG_DATA_HOME", "/data")]);
        assert_eq!(data.as_deref(), Some("/data/agent-authority"));
        assert_eq!(folder(Some("/d"), &[home]).as_deref(), Some("/d"));
        // The folder of other commands, by its name.
        let usual = Config::default().data_dir.display().to_string();
        assert_eq!(folder(Some(&usual), &[home]), Some(usual));
        assert_eq!(folder(None, &[]), None);
    }
}
