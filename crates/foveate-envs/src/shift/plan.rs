//! Which shifts, how severe, and when.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use foveate_core::{EnvError, EnvSpec, ImageBuf};

use super::catalogue::find;
use super::descriptor::{KnobKind, ShiftDescriptor};
pub use super::operator::KnobValue;
use super::parse;

/// The highest severity; 0 is no shift at all.
pub const MAX_SEVERITY: f64 = 5.0;

/// One operator, how severe it is, and in which steps it is on.
#[derive(Debug, Clone, PartialEq)]
pub struct Shift {
    info: &'static ShiftDescriptor,
    severity: f64,
    from: u64,
    until: Option<u64>,
    settings: Vec<KnobValue>,
}

/// Pictures that are not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingPictures {
    /// Those of a folder.
    Folder(String),
    /// That of a file.
    File(String),
}

impl Shift {
    /// The operator called `name` over the whole episode, its knobs at their defaults.
    ///
    /// # Errors
    /// When there is no such operator, or `severity` is not in 0.0..=5.0.
    pub fn new(name: &str, severity: f64) -> Result<Self, EnvError> {
        let info = find(name)?;
        let settings =
            info.knobs.iter().map(|knob| knob.default_setting(info.name)).collect::<Result<_, _>>()?;
        let mut shift = Shift { info, severity: 0.0, from: 0, until: None, settings };
        shift.set_severity(severity)?;
        Ok(shift)
    }

    /// The operator.
    pub const fn info(&self) -> &'static ShiftDescriptor {
        self.info
    }

    /// How severe, 0 to 5; between whole numbers the table's amounts are interpolated.
    pub const fn severity(&self) -> f64 {
        self.severity
    }

    /// Sets how severe, 0 to 5.
    ///
    /// # Errors
    /// When `severity` is not in 0.0..=5.0.
    pub fn set_severity(&mut self, severity: f64) -> Result<(), EnvError> {
        if !(0.0..=MAX_SEVERITY).contains(&severity) {
            return Err(EnvError::BadOption {
                env: format!("shift {}", self.info.name),
                why: format!("severity {severity} must be a number from 0 (off) to 5"),
            });
        }
        self.severity = severity;
        Ok(())
    }

    /// The same shift, on from step `from` to before step `until`; step 0 is the world just reset.
    #[must_use]
    pub fn during(mut self, from: u64, until: Option<u64>) -> Self {
        (self.from, self.until) = (from, until);
        self
    }

    /// The first step that it is on, and the first that it is off again.
    pub const fn steps(&self) -> (u64, Option<u64>) {
        (self.from, self.until)
    }

    /// Sets a parameter from text, as in `0.5` or `#cc0000`.
    ///
    /// # Errors
    /// When the operator has no such parameter or the value is invalid.
    pub fn set(&mut self, knob: &str, text: &str) -> Result<(), EnvError> {
        let Some(at) = self.info.knobs.iter().position(|k| k.name == knob) else {
            let known: Vec<&str> = self.info.knobs.iter().map(|k| k.name).collect();
            return Err(EnvError::UnknownOption {
                env: format!("shift {}", self.info.name),
                what: "parameter",
                given: knob.into(),
                known: if known.is_empty() { "(it has none)".into() } else { known.join(", ") },
            });
        };
        self.settings[at] = self.info.knobs[at].setting(self.info.name, text)?;
        Ok(())
    }

    /// The settings of the operator's parameters, in their order.
    pub fn settings(&self) -> &[KnobValue] {
        &self.settings
    }

    /// The setting of the parameter called `knob`.
    pub fn setting(&self, knob: &str) -> Option<&KnobValue> {
        let at = self.info.knobs.iter().position(|k| k.name == knob)?;
        self.settings.get(at)
    }

    /// The amount in the operator's unit at step `step`; 0 while it is off.
    pub fn amount_at(&self, step: u64) -> f64 {
        if step < self.from || self.until.is_some_and(|until| step >= until) {
            return 0.0;
        }
        self.info.amount(self.severity)
    }
}

/// Shifts that are applied together, in this order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan(Vec<Shift>);

impl Plan {
    /// No shifts.
    pub const fn none() -> Self {
        Plan(Vec::new())
    }

    /// These shifts, in this order.
    pub const fn new(shifts: Vec<Shift>) -> Self {
        Plan(shifts)
    }

    /// Reads several texts, each as [`Plan::from_str`] would, into one plan.
    ///
    /// # Errors
    /// As [`Plan::from_str`].
    pub fn parse_all<S: AsRef<str>>(texts: &[S]) -> Result<Self, EnvError> {
        let mut shifts = Vec::new();
        for text in texts {
            parse::parse(text.as_ref(), &mut shifts)?;
        }
        Ok(Plan(shifts))
    }

    /// The shifts, in their order.
    pub fn list(&self) -> &[Shift] {
        &self.0
    }

    /// The shifts, to be changed.
    pub const fn list_mut(&mut self) -> &mut Vec<Shift> {
        &mut self.0
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that these shifts can be applied to a world with this spec: that it shows what they change, and that the
    /// pictures they need are loaded.
    ///
    /// # Errors
    /// [`EnvError::BadOption`] with the first one that does not fit.
    pub fn check(&self, spec: &EnvSpec) -> Result<(), EnvError> {
        super::shifted::fit(self, spec).map(drop)
    }

    /// The first folder or file whose pictures are not loaded.
    pub fn missing_pictures(&self) -> Option<MissingPictures> {
        let mut settings = self.0.iter().flat_map(|shift| &shift.settings);
        settings.find_map(|setting| match setting {
            KnobValue::Folder(folder, pictures) if pictures.is_empty() => {
                Some(MissingPictures::Folder(folder.clone()))
            }
            KnobValue::File(file, pictures) if pictures.is_empty() && !file.is_empty() => {
                Some(MissingPictures::File(file.clone()))
            }
            _ => None,
        })
    }

    /// The pictures that were loaded for `missing`.
    pub fn pictures(&self, missing: &MissingPictures) -> Option<&Arc<Vec<ImageBuf>>> {
        let mut settings = self.0.iter().flat_map(|shift| &shift.settings);
        settings.find_map(|setting| match (setting, missing) {
            (KnobValue::Folder(name, pictures), MissingPictures::Folder(wanted))
            | (KnobValue::File(name, pictures), MissingPictures::File(wanted))
                if name == wanted =>
            {
                Some(pictures)
            }
            _ => None,
        })
    }

    /// Sets the pictures of `missing` where they are needed.
    pub fn set_pictures(&mut self, missing: &MissingPictures, pictures: &Arc<Vec<ImageBuf>>) {
        for setting in self.0.iter_mut().flat_map(|shift| &mut shift.settings) {
            match (setting, missing) {
                (KnobValue::Folder(name, slot), MissingPictures::Folder(wanted))
                | (KnobValue::File(name, slot), MissingPictures::File(wanted))
                    if name == wanted =>
                {
                    *slot = Arc::clone(pictures);
                }
                _ => {}
            }
        }
    }

    /// The shifts that see the world's own picture, before wrappers change it, and all others; both in their order.
    pub fn split_at_wrappers(self) -> (Plan, Plan) {
        let (before, after) = self
            .0
            .into_iter()
            .partition(|shift| shift.info.knobs.iter().any(|knob| knob.kind == KnobKind::File));
        (Plan(before), Plan(after))
    }
}

/// Reads `brightness:3`, `noise:2@200`, `blob:4:x=0.3:y=0.5@100-300+delay:1`; the empty text is no shift at all.
///
/// Shifts are separated by `+`; each is a name, a severity from 1 to 5 (3 if it is left out), parameters, and after an
/// `@` the steps in which it is on: `@200` from step 200 on, `@200-400` in the steps 200 to 399.
///
/// # Errors
/// [`EnvError::UnknownOption`] with the known names for an operator or parameter that does not exist,
/// [`EnvError::BadOption`] for a value out of range.
impl FromStr for Plan {
    type Err = EnvError;

    fn from_str(text: &str) -> Result<Self, EnvError> {
        Self::parse_all(&[text])
    }
}

/// Writes what [`Plan::from_str`] reads, of this shift alone.
impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write(self, f)
    }
}

/// Writes what [`Plan::from_str`] reads, with every parameter that is not at its default.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, shift) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            parse::write(shift, f)?;
        }
        Ok(())
    }
}
