//! What to do about a file that can't be read: mostly it isn't there. Which command makes it, if it is one of this project's own guests.
use crate::host::reader::nearest;
use std::path::Path;

/// Where the scripts of `guests/` put what they make.
const BUILT: &str = ".cache/guests/";

/// By this the project's folder is known.
const SCRIPTS: &str = "guests/probes/Makefile";

/// What makes the guests that most systems need.
const MAKE: &str = "make guests";
const U_BOOT: &str = "guests/u-boot/build";
const DEBIAN: &str = "guests/debian/build";

/// Files there, and what makes them. Probes and FreeRTOS's builds for several cores are listed in their Makefiles.
const MADE: [(&str, &str); 22] = [
    ("linux/Image", MAKE),
    ("linux/initramfs.cpio.gz", MAKE),
    ("linux/task-set.cpio.gz", MAKE),
    ("linux/channel.cpio.gz", MAKE),
    ("linux/give-way.cpio.gz", MAKE),
    ("linux/micro.cpio.gz", MAKE),
    ("linux/translation.cpio.gz", MAKE),
    ("linux/kmsg.cpio.gz", MAKE),
    ("linux/text.cpio.gz", MAKE),
    ("linux/virtio.cpio.gz", MAKE),
    ("debian/root.img", DEBIAN),
    ("debian/disk.img", DEBIAN),
    ("debian/initrd.cpio.gz", DEBIAN),
    ("linux/userland.cpio.gz", "guests/linux/build userland"),
    ("linux/Image-sid", "guests/linux/build sid"),
    ("freertos/freertos.elf", MAKE),
    ("freertos/freertos-sbi-timer.elf", MAKE),
    ("freertos/freertos-pie.elf", MAKE),
    ("fuzz/fuzz.elf", MAKE),
    ("u-boot/u-boot.bin", U_BOOT),
    ("u-boot/uboot.elf", U_BOOT),
    ("u-boot/u-boot-linux.elf", U_BOOT),
];
const PROBES: &str = include_str!("../../../../../guests/probes/Makefile");
const FREERTOS: &str = include_str!("../../../../../guests/freertos/Makefile");

/// What would be right instead of a path that leads to nothing that can be read.
pub fn help(path: &Path) -> String {
    if path.exists() && !path.is_file() {
        return "name the file itself".into();
    }
    let path = path.to_string_lossy();
    let Some((folder, file)) = path.split_once(BUILT) else {
        return "paths are relative to the manifest".into();
    };
    let made = made();
    if let Some((_, command)) = made.iter().find(|(name, _)| name == file) {
        return if Path::new(folder).join(SCRIPTS).is_file() {
            format!("it is built by `{command}`, called in the project's folder")
        } else {
            format!(
                "paths are relative to the manifest, and {folder} isn't the project's folder, where `{command}` builds it"
            )
        };
    }
    let names: Vec<&str> = made.iter().map(|(name, _)| &**name).collect();
    let told = match nearest(file, &names) {
        Some(name) => format!(": did you mean `{BUILT}{name}`?"),
        None => format!("; {}", of_folder(file, &names)),
    };
    format!("the project builds no such file{told}")
}

/// What there is to choose from where a file was looked for.
fn of_folder(file: &str, names: &[&str]) -> String {
    let of = |name: &str| name.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let folder = of(file);
    let beside: Vec<&str> = names.iter().copied().filter(|name| of(name) == folder).collect();
    if beside.is_empty() {
        return format!("it builds those of docs/guests.md into {BUILT}");
    }
    let files: Vec<&str> = beside.iter().map(|name| &name[folder.len() + 1..]).collect();
    format!("into {BUILT}{folder} it builds {}", files.join(", "))
}

/// All files that the project makes there, and what makes them.
fn made() -> Vec<(String, &'static str)> {
    let probes = [("PROBES", "elf"), ("PIE", "elf"), ("RAW", "bin")].into_iter().flat_map(|(list, end)| {
        words(PROBES, list).into_iter().map(move |name| (format!("probes/{name}.{end}"), MAKE))
    });
    let cores = words(FREERTOS, "SMP").into_iter();
    let freertos = cores.map(|cores| (format!("freertos/freertos-smp{cores}.elf"), MAKE));
    MADE.into_iter().map(|(file, command)| (file.to_owned(), command)).chain(probes).chain(freertos).collect()
}

/// The words of a variable of a Makefile.
fn words(makefile: &str, variable: &str) -> Vec<String> {
    let makefile = makefile.replace("\\\n", " ");
    let mut values = makefile.lines().filter_map(|line| line.split_once(":="));
    let value = values.find(|(name, _)| name.trim() == variable).map_or("", |(_, value)| value);
    value.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, fs, path::PathBuf};

    fn top() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// A manifest that was written for one folder and lies in another: to build the files doesn't help.
    #[test]
    fn a_path_from_the_wrong_folder_is_told() {
        let right = top().join("systems/../.cache/guests/linux/Image");
        let wrong = top().join("systems/.cache/guests/linux/Image");
        assert!(help(&right).starts_with("it is built by `make guests`"), "{}", help(&right));
        assert!(help(&wrong).starts_with("paths are relative to the manifest, and "), "{}", help(&wrong));
    }

    #[test]
    fn the_command_that_makes_a_guest_is_named() {
        for (path, command) in [
            ("systems/../.cache/guests/u-boot/u-boot-linux.elf", "`guests/u-boot/build`"),
            ("/x/.cache/guests/linux/userland.cpio.gz", "`guests/linux/build userland`"),
            ("/x/.cache/guests/linux/Image-sid", "`guests/linux/build sid`"),
            ("/x/.cache/guests/linux/Image", "`make guests`"),
            ("/x/.cache/guests/linux/task-set.cpio.gz", "`make guests`"),
            ("/x/.cache/guests/freertos/freertos.elf", "`make guests`"),
            ("/x/.cache/guests/freertos/freertos-smp4.elf", "`make guests`"),
            ("/x/.cache/guests/probes/wild-store.elf", "`make guests`"),
            ("/x/.cache/guests/probes/pie-relr.elf", "`make guests`"),
            ("/x/.cache/guests/probes/selfshutdown.bin", "`make guests`"),
        ] {
            assert!(help(Path::new(path)).contains(command), "{path}: {}", help(Path::new(path)));
        }
        assert_eq!(help(Path::new("mine/Image")), "paths are relative to the manifest");
        assert_eq!(help(Path::new("/dev/null")), "name the file itself");
        assert_eq!(help(&std::env::temp_dir()), "name the file itself");
    }

    #[test]
    fn what_no_command_makes_is_not_promised() {
        for (file, told) in [
            ("linux/Imag", ": did you mean `.cache/guests/linux/Image`?"),
            ("probes/tmier.elf", ": did you mean `.cache/guests/probes/timer.elf`?"),
            ("probes/timer.bin", ": did you mean `.cache/guests/probes/timer.elf`?"),
            ("u-boot/u-boot.elf", ": did you mean `.cache/guests/u-boot/uboot.elf`?"),
            ("windows/kernel.exe", "; it builds those of docs/guests.md into .cache/guests/"),
            (
                "freertos/control-loop.bin",
                "; into .cache/guests/freertos it builds freertos.elf, freertos-sbi-timer.elf, freertos-pie.elf, freertos-smp2.elf, freertos-smp4.elf",
            ),
        ] {
            let path = Path::new("systems/../.cache/guests").join(file);
            assert_eq!(help(&path), format!("the project builds no such file{told}"));
        }
    }

    /// A script that has moved, or a file that has another name now, would be named in vain.
    #[test]
    fn the_commands_make_the_files() {
        for (file, _) in MADE {
            let (folder, name) = file.split_once('/').unwrap();
            let rules = ["build", "Makefile"].map(|rules| top().join("guests").join(folder).join(rules));
            let rules: String = rules.iter().filter_map(|rules| fs::read_to_string(rules).ok()).collect();
            let target =
                |word: &str| word.trim_end_matches([':', ';', '"', '\'']).rsplit('/').next() == Some(name);
            assert!(rules.split([' ', '\n']).any(target), "{file}");
        }
        for (_, command) in MADE {
            let (script, _) = command.split_once(' ').unwrap_or((command, ""));
            assert!(command == MAKE || top().join(script).is_file(), "{script}");
        }
    }

    /// What systems and experiments ask for is made by somebody.
    #[test]
    fn every_guest_of_the_projects_systems_is_known() {
        let made: BTreeSet<String> = made().into_iter().map(|(file, _)| file).collect();
        let mut asked = 0;
        let mut folders = vec![top().join("systems"), top().join("experiments")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "toml") {
                    let text = fs::read_to_string(&path).unwrap();
                    // Behind `!` stands a file of an archive.
                    let paths = text.split(['"', '!']).filter_map(|text| text.split_once(BUILT));
                    for (_, file) in paths {
                        assert!(made.contains(file), "{file} of {}", path.display());
                        asked += 1;
                    }
                }
            }
        }
        assert!(asked > 20, "{asked}");
    }
}
