//! Conditions: the rows of a table.

use foveate_core::EnvSpec;
use foveate_core::hint::Setting;
use foveate_envs::registry::EnvRequest;
use foveate_envs::shift::{MAX_SEVERITY, Plan, SHIFT_SETS, Shift, ShiftDescriptor};
use foveate_registry::{SHIFTS, WORLDS};

use crate::error::RunError;
use crate::worlds;

/// The name of the unmodified row.
pub(super) const ORIGINAL: &str = "original";

/// One row: a modification of the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The name, such as `bar` or `noise:3@200`.
    pub name: String,
    /// The modification.
    pub what: What,
}

/// The modification of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Nothing.
    Original,
    /// The world's appearance, by one of its own variants.
    Variant(String),
    /// Observations or actions, by a plan of shifts.
    Shift {
        /// The plan.
        plan: Plan,
        /// The operators without their severity, and the severity, for curves; `None` for a plan with its own
        /// severity.
        curve: Option<(String, f64)>,
    },
}

impl Condition {
    /// `world` with this modification.
    pub fn in_world(&self, world: &EnvRequest) -> EnvRequest {
        let mut request = world.clone();
        match &self.what {
            What::Original => {}
            What::Variant(variant) => request.variants.push(variant.clone()),
            What::Shift { plan, .. } => request.shifts.push(plan.to_string()),
        }
        request
    }
}

/// The rows of a table: the unmodified world, then `variants`, then `shifts`.
///
/// * `variants`: `all`, `none`, or texts as `--variant` takes them, separated by commas. `all` is every
///   variant that needs only its name; CarRacing's `video` needs pictures.
/// * `shifts`: `all` (those that [fit](fitting_shifts) the world), `none`, or plans separated by commas; a plan without its own severity becomes a row for
///   each of `severities`.
/// * `at`: the step in which shifts are switched on.
///
/// # Errors
/// When a variant or shift does not exist, or `at` does not fit the shifts.
pub fn conditions(
    world: &EnvRequest,
    variants: &str,
    shifts: &str,
    severities: &[f64],
    at: Option<u64>,
) -> Result<Vec<Condition>, RunError> {
    let mut rows = vec![Condition { name: ORIGINAL.into(), what: What::Original }];
    let mut add = |condition: Condition| {
        if rows.iter().all(|row| row.name != condition.name) {
            rows.push(condition);
        }
    };
    for variant in variant_names(world, variants) {
        missing(&variant, "variant", variants)?;
        add(Condition { name: variant.clone(), what: What::Variant(variant) });
    }
    let mut any = false;
    for text in shift_texts(world, shifts)? {
        any = true;
        missing(&text, "shift", shifts)?;
        let mut plan: Plan = text.parse()?;
        if let Some(step) = at {
            if text.contains('@') {
                return Err(RunError::BadRequest {
                    why: format!(
                        "shift {text:?} says itself when it begins; leave out either @ or {}",
                        Setting::At.to(step)
                    ),
                });
            }
            plan = Plan::new(plan.list().iter().map(|shift| shift.clone().during(step, None)).collect());
        }
        if has_severity(&text) {
            add(Condition { name: plan.to_string(), what: What::Shift { plan, curve: None } });
            continue;
        }
        for &severity in severities {
            for shift in plan.list_mut() {
                shift.set_severity(severity)?;
            }
            let what = What::Shift { plan: plan.clone(), curve: Some((text.clone(), severity)) };
            add(Condition { name: plan.to_string(), what });
        }
    }
    match at {
        Some(step) if !any => Err(RunError::BadRequest {
            why: format!(
                "{} switches shifts on, and there are none; name some, as in {}",
                Setting::At.to(step),
                Setting::Shifts.to("noise,blur")
            ),
        }),
        _ => Ok(rows),
    }
}

/// Reports an error if an entry of `list` is empty.
fn missing(text: &str, what: &str, list: &str) -> Result<(), RunError> {
    if text.is_empty() {
        return Err(RunError::BadRequest {
            why: format!("a {what} is missing in {list:?}; separate them by single commas"),
        });
    }
    Ok(())
}

/// The variants that `text` names.
fn variant_names(world: &EnvRequest, text: &str) -> Vec<String> {
    match text.trim() {
        "none" | "" => vec![],
        "all" => {
            let known = WORLDS.get(&world.id);
            let whole = known.into_iter().flat_map(|known| known.whole_variants(world.picture.as_deref()));
            whole.map(|info| info.name.to_owned()).collect()
        }
        names => {
            names.split(',').map(|name| name.trim().to_owned()).filter(|name| name != ORIGINAL).collect()
        }
    }
}

/// The plans that `text` names.
fn shift_texts(world: &EnvRequest, text: &str) -> Result<Vec<String>, RunError> {
    Ok(match text.trim() {
        "none" | "" => vec![],
        "all" => fitting_shifts(&worlds::shape(world)?).0.iter().map(|info| info.name.to_owned()).collect(),
        texts => texts
            .split(',')
            .flat_map(|text| match SHIFT_SETS.get(text.trim()) {
                Some(set) => set.shifts.iter().map(|&text| text.to_owned()).collect(),
                None => vec![text.trim().to_owned()],
            })
            .collect(),
    })
}

/// The shifts that can be applied to a world with this spec by their names alone, and those that cannot: such as
/// shifts of pictures when it shows numbers, or one that needs a file.
pub fn fitting_shifts(spec: &EnvSpec) -> (Vec<&'static ShiftDescriptor>, Vec<&'static ShiftDescriptor>) {
    SHIFTS.iter().partition(|info| {
        let shift = Shift::new(info.name, MAX_SEVERITY);
        shift.and_then(|shift| Plan::new(vec![shift]).check(spec)).is_ok()
    })
}

/// Returns whether any shift of a valid plan has a severity.
fn has_severity(text: &str) -> bool {
    text.split('+').any(|piece| {
        let head = piece.split('@').next().unwrap_or_default();
        head.split(':').nth(1).is_some_and(|second| !second.contains('='))
    })
}

/// Reads `1..5` (1, 2, 3, 4, 5), `3`, or `1,3,4.5`.
///
/// # Errors
/// When an entry is not a number from 1 to 5, or there is none.
pub fn severities(text: &str) -> Result<Vec<f64>, RunError> {
    let whole = |text: &str| text.trim().parse::<u8>().ok().filter(|s| (1..=5).contains(s));
    let list: Option<Vec<f64>> = match text.split_once("..") {
        Some((from, to)) => whole(from).zip(whole(to)).map(|(from, to)| (from..=to).map(f64::from).collect()),
        None => text
            .split(',')
            .map(|text| text.trim().parse().ok().filter(|s| (1.0..=MAX_SEVERITY).contains(s)))
            .collect(),
    };
    list.filter(|list| !list.is_empty()).ok_or_else(|| RunError::BadRequest {
        why: format!("severities {text:?} are not numbers from 1 to 5; write them as 1..5 or 1,3,5"),
    })
}
