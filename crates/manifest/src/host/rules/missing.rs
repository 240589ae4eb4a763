//! What to do about a file that can't be read: mostly it isn't there. Which command makes it, if it is one of this project's own guests.
use std::path::Path;

/// Where the scripts of `guests/` put what they make.
const BUILT: &str = ".cache/guests/";

/// Guests that `make guests` leaves out, as not every system needs them, and what makes them.
const LEFT_OUT: [(&str, &str); 3] = [
    ("u-boot/", "guests/u-boot/build"),
    ("linux/userland.cpio.gz", "guests/linux/build userland"),
    ("linux/Image-sid", "guests/linux/build sid"),
];

/// What would be right instead of a path that leads nowhere.
pub fn help(path: &Path) -> String {
    let path = path.to_string_lossy();
    let Some((_, built)) = path.split_once(BUILT) else {
        return "paths are relative to the manifest".into();
    };
    let left_out = LEFT_OUT.iter().find(|(beginning, _)| built.starts_with(beginning));
    let command = left_out.map_or("make guests", |(_, command)| command);
    format!("it is built by `{command}`, called in the project's folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_makes_a_guest_is_named() {
        for (path, command) in [
            ("systems/../.cache/guests/u-boot/u-boot-linux.elf", "`guests/u-boot/build`"),
            ("/x/.cache/guests/linux/userland.cpio.gz", "`guests/linux/build userland`"),
            ("/x/.cache/guests/linux/Image-sid", "`guests/linux/build sid`"),
            ("/x/.cache/guests/linux/Image", "`make guests`"),
            ("/x/.cache/guests/freertos/freertos.elf", "`make guests`"),
        ] {
            assert!(help(Path::new(path)).contains(command), "{path}: {}", help(Path::new(path)));
        }
        assert_eq!(help(Path::new("mine/Image")), "paths are relative to the manifest");
    }

    /// A script that has moved would be named in vain.
    #[test]
    fn the_commands_are_there() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (_, command) in LEFT_OUT {
            let (script, _) = command.split_once(' ').unwrap_or((command, ""));
            assert!(top.join(script).is_file(), "{script}");
        }
    }
}
