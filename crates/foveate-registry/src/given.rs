//! The text of an option, read as a number, a size, or yes or no.

use foveate_control::ControlConfig;
use foveate_core::EnvError;
use foveate_envs::registry::EnvRequest;

/// An option of a request, as it was given.
pub(crate) struct Given<'a> {
    world: &'a str,
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl Given<'_> {
    /// All options of a request.
    pub(crate) fn all(request: &EnvRequest) -> impl Iterator<Item = Given<'_>> {
        request.options.iter().map(|(name, text)| Given { world: &request.id, name, text })
    }

    /// The error that says what is `wanted`.
    pub(crate) fn bad(&self, wanted: &str) -> EnvError {
        let Given { world, name, text } = *self;
        EnvError::BadOption { env: world.into(), why: format!("{name} is {wanted}, not {text:?}") }
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn count(&self, most: usize) -> Result<usize, EnvError> {
        let good = self.text.parse().ok().filter(|count| (1..=most).contains(count));
        good.ok_or_else(|| self.bad(&format!("a whole number from 1 to {most}")))
    }

    /// A number in a range.
    pub(crate) fn number(&self, [low, high]: [f64; 2]) -> Result<f64, EnvError> {
        let good = self.text.parse().ok().filter(|number| (low..=high).contains(number));
        good.ok_or_else(|| self.bad(&format!("a number from {low} to {high}")))
    }

    /// `true` or `false`.
    pub(crate) fn choice(&self) -> Result<bool, EnvError> {
        self.text.parse().map_err(|_| self.bad("true or false"))
    }

    /// Width and height from a side or `WIDTHxHEIGHT`.
    pub(crate) fn size(&self) -> Result<[usize; 2], EnvError> {
        let most = ControlConfig::LARGEST_SIDE;
        let (width, height) = self.text.split_once('x').unwrap_or((self.text, self.text));
        let side = |side: &str| side.parse().ok().filter(|side| (1..=most).contains(side));
        let sides = side(width).zip(side(height)).map(|(width, height)| [width, height]);
        sides.ok_or_else(|| self.bad(&format!("a side or WIDTHxHEIGHT, each from 1 to {most}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Given<'_> {
        Given { world: "a-world", name: "key", text }
    }

    #[test]
    fn texts_are_read_and_what_is_wrong_is_said() {
        assert_eq!(given("7").count(7), Ok(7));
        assert_eq!(given("0.5").number([0.5, 2.0]), Ok(0.5));
        assert_eq!(given("false").choice(), Ok(false));
        assert_eq!(given("84").size(), Ok([84, 84]));
        assert_eq!(given("320x240").size(), Ok([320, 240]));
        for (error, wanted) in [
            (given("8").count(7).err(), "a whole number from 1 to 7"),
            (given("0").count(7).err(), "a whole number from 1 to 7"),
            (given("-1").count(7).err(), "a whole number from 1 to 7"),
            (given("nan").number([0.0, 2.0]).err(), "a number from 0 to 2"),
            (given("yes").choice().err(), "true or false"),
            (given("84x").size().err(), "a side or WIDTHxHEIGHT, each from 1 to 2048"),
            (given("84x2049").size().err(), "a side or WIDTHxHEIGHT, each from 1 to 2048"),
        ] {
            let said = error.expect("refused").to_string();
            assert!(said.contains("a-world") && said.contains(&format!("key is {wanted}, not ")), "{said}");
        }
    }
}
