//! Distractions as text: `background:level=hard:dynamic=true`, `colors+camera`.

use foveate_core::EnvError;
use foveate_envs::registry::{Parameter, VariantInfo};

use super::{BackgroundConfig, DistractionConfig, Source, Strength};

const PAPER: &str = "Stone et al. 2021";
const PICTURES: &[&str] = &["pixels", "both"];

const LEVEL: Parameter = Parameter {
    name: "level",
    default: "easy",
    about: "easy, medium, hard, or the scale as a number from 0 to 1",
};
const DYNAMIC: Parameter = Parameter {
    name: "dynamic",
    default: "false",
    about: "whether it changes within an episode, true or false",
};
const SOURCE: Parameter =
    Parameter { name: "source", default: "train", about: "of generated clips: train or validation" };
const FOLDER: Parameter = Parameter {
    name: "folder",
    default: "none",
    about: "of PNG or JPEG pictures, in the order of their names, or a GIF: one clip; or of several such folders; must come last",
};

static CATALOGUE: [VariantInfo; 4] = [
    VariantInfo {
        name: "background",
        about: "a picture or a clip in place of the sky, and a floor that may be transparent",
        parameters: &[LEVEL, DYNAMIC, SOURCE, FOLDER],
        source: PAPER,
        pictures: PICTURES,
    },
    VariantInfo {
        name: "colors",
        about: "every material has another colour",
        parameters: &[LEVEL, DYNAMIC],
        source: PAPER,
        pictures: PICTURES,
    },
    VariantInfo {
        name: "camera",
        about: "the camera is elsewhere, nearer or farther, and rolled",
        parameters: &[LEVEL, DYNAMIC],
        source: PAPER,
        pictures: PICTURES,
    },
    VariantInfo {
        name: "distracting",
        about: "background, colors and camera together, as in the Distracting Control Suite",
        parameters: &[LEVEL, DYNAMIC, SOURCE, FOLDER],
        source: PAPER,
        pictures: PICTURES,
    },
];

/// All distractions, in the order of `foveate list`.
pub const fn catalogue() -> &'static [VariantInfo] {
    &CATALOGUE
}

impl DistractionConfig {
    /// Parses texts as `--variant` takes them: names with parameters, separated by `+` or `,`; `original` means none. A folder takes
    /// the rest of its text.
    ///
    /// # Errors
    /// When a name or a parameter is unknown, a value is invalid, or a distraction is there twice. `env` is the world's name.
    pub fn parse_all<S: AsRef<str>>(env: &str, texts: &[S]) -> Result<Self, EnvError> {
        let mut config = DistractionConfig::default();
        for text in texts {
            let mut rest = text.as_ref();
            while !rest.is_empty() {
                // A folder may have any characters.
                let end = match (rest.find(['+', ',']), rest.find(":folder=")) {
                    (Some(end), Some(folder)) if folder < end => rest.len(),
                    (end, _) => end.unwrap_or(rest.len()),
                };
                config.add(env, rest[..end].trim())?;
                rest = rest.get(end + 1..).unwrap_or("");
            }
        }
        Ok(config)
    }

    fn add(&mut self, env: &str, text: &str) -> Result<(), EnvError> {
        let (name, mut rest) = text.split_once(':').unwrap_or((text, ""));
        if matches!(name, "original" | "") {
            return Ok(());
        }
        let info =
            CATALOGUE.iter().find(|info| info.name == name).ok_or_else(|| EnvError::UnknownOption {
                env: env.into(),
                what: "variant",
                given: name.into(),
                known: CATALOGUE.each_ref().map(|info| info.name).join(", "),
            })?;
        let bad = |key: &str, value: &str, wanted: &str| EnvError::BadOption {
            env: env.into(),
            why: format!("variant {name}: {key} = {value:?} must be {wanted}"),
        };
        let mut strength = Strength { scale: 0.1, dynamic: false };
        let (mut source, mut folder) = (Source::Train, None);
        while !rest.is_empty() {
            let (key, after) = rest.split_once('=').unwrap_or((rest, ""));
            if info.parameters.iter().all(|parameter| parameter.name != key) {
                return Err(EnvError::UnknownOption {
                    env: format!("{env} variant {name}"),
                    what: "parameter",
                    given: key.into(),
                    known: info.parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
                });
            }
            let (value, next) =
                if key == "folder" { (after, "") } else { after.split_once(':').unwrap_or((after, "")) };
            match key {
                "level" => {
                    let known = [("easy", 0.1), ("medium", 0.2), ("hard", 0.3)];
                    let named = known.iter().find(|(name, _)| *name == value).map(|&(_, scale)| scale);
                    let scale =
                        named.or_else(|| value.parse().ok()).filter(|scale| (0.0..=1.0).contains(scale));
                    strength.scale =
                        scale.ok_or_else(|| bad(key, value, "easy, medium, hard or a number from 0 to 1"))?;
                }
                "dynamic" => {
                    strength.dynamic = value.parse().map_err(|_| bad(key, value, "true or false"))?;
                }
                "source" => {
                    source = match value {
                        "train" => Source::Train,
                        "validation" => Source::Validation,
                        _ => return Err(bad(key, value, "train or validation")),
                    };
                }
                _ if value == FOLDER.default => folder = None,
                _ if value.is_empty() => return Err(bad(key, value, "a folder of pictures, or a GIF")),
                _ => folder = Some(value.to_owned()),
            }
            rest = next;
        }
        let all = name == "distracting";
        let mut twice = false;
        if all || name == "background" {
            let config = BackgroundConfig { strength, source, folder, clips: None };
            twice |= self.background.replace(config).is_some();
        }
        if all || name == "colors" {
            twice |= self.colors.replace(strength).is_some();
        }
        if all || name == "camera" {
            twice |= self.camera.replace(strength).is_some();
        }
        if twice {
            let why = format!("variant {name} changes what another variant changes, too; keep one of them");
            return Err(EnvError::BadOption { env: env.into(), why });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DistractionConfig, String> {
        DistractionConfig::parse_all("cheetah-run", &[text]).map_err(|error| error.to_string())
    }

    #[test]
    fn texts_are_understood() {
        assert!(parse("original").expect("none").is_empty() && parse("").expect("none").is_empty());
        let config = parse("colors:level=hard+camera:level=0.05:dynamic=true").expect("fine");
        assert_eq!(config.colors, Some(Strength { scale: 0.3, dynamic: false }));
        assert_eq!(config.camera, Some(Strength { scale: 0.05, dynamic: true }));
        assert_eq!(config.background, None);
        let config = parse("colors,background:source=validation:folder=/a+b,c:d").expect("fine");
        let background = config.background.as_ref().expect("there");
        assert_eq!((background.source, background.folder.as_deref()), (Source::Validation, Some("/a+b,c:d")));
        assert_eq!(config.missing_films(), Some(("/a+b,c:d", 4)));
        let all = parse("distracting:level=medium").expect("fine");
        assert!(all.background.is_some() && all.colors.is_some() && all.camera.is_some());
    }

    #[test]
    fn bad_texts_are_refused() {
        for (text, part) in [
            ("fog", "no variant \"fog\""),
            ("colors:source=train", "no parameter \"source\""),
            ("colors:level=2", "level = \"2\" must be easy"),
            ("colors:level=NaN", "level = \"NaN\" must be easy"),
            ("camera:dynamic=yes", "must be true or false"),
            ("background:source=test", "must be train or validation"),
            ("background:folder=", "must be a folder"),
            ("distracting+colors", "keep one of them"),
        ] {
            let said = parse(text).expect_err(text);
            assert!(said.contains(part) && said.lines().count() == 1, "{text}: {said}");
        }
    }
}
