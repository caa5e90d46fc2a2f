//! Axes whose ends are round numbers, chosen from the data.

/// An axis from one tick to another, with steps of the roundest size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundAxis {
    /// The lower end, a multiple of the step.
    pub low: f64,
    /// The upper end, a multiple of the step.
    pub high: f64,
    /// The distance of neighbouring ticks: 1, 2 or 5 times a power of ten.
    pub step: f64,
}

/// Smaller numbers than this are drawn as 0, and larger ones than its inverse not at all.
const LEAST: f64 = 1e-300;

impl RoundAxis {
    /// The shortest axis of at most `most` steps that holds 0 and all of `values`; without any other number, 0 to 1.
    /// Numbers that are not finite are left out.
    pub fn of(values: impl IntoIterator<Item = f64>, most: usize) -> Self {
        let finite = values.into_iter().filter(|v| v.abs() < 1.0 / LEAST);
        let (low, high) = finite.fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if high - low > LEAST { (low, high) } else { (0.0, 1.0) };
        let most = most.max(2);
        let mut power = 10.0_f64.powf(((high - low) / most as f64).log10().floor());
        loop {
            for factor in [1.0, 2.0, 5.0] {
                let step = factor * power;
                // Ends are rounded outward, so the step has to be so large that the whole still fits.
                let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
                if last - first <= most as f64 {
                    return RoundAxis { low: first * step, high: last * step, step };
                }
            }
            power *= 10.0;
        }
    }

    /// Its ends.
    pub const fn domain(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Every tick with its label.
    pub fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let (first, last) = ((self.low / self.step).round() as i64, (self.high / self.step).round() as i64);
        (first..=last).map(|i| i as f64 * self.step).map(|value| (value, self.label(value)))
    }

    /// A tick as short as it can be said: with the decimals of the step, or with a power of ten.
    fn label(&self, value: f64) -> String {
        let size = self.low.abs().max(self.high.abs());
        if value == 0.0 {
            "0".into()
        } else if size >= 1e6 || self.step < 1e-4 {
            // Rounded to the step's place: 3 times 0.1 is 0.30000000000000004.
            let digits = (value.abs().log10().floor() - self.step.log10().floor()).max(0.0) as usize;
            let text = format!("{value:.digits$e}");
            let (number, power) = text.split_once('e').unwrap_or((&text, "0"));
            let number = if number.contains('.') {
                number.trim_end_matches('0').trim_end_matches('.')
            } else {
                number
            };
            format!("{number}e{power}")
        } else {
            format!("{value:.*}", (-self.step.log10().floor()).max(0.0) as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], most: usize, expect: &[&str]) {
        let axis = RoundAxis::of(values.iter().copied(), most);
        let ticks: Vec<(f64, String)> = axis.ticks().collect();
        assert_eq!(ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>(), expect, "{axis:?}");
        assert!(ticks.len() <= most.max(2) + 1);
        for v in values.iter().filter(|v| v.is_finite() && v.abs() < 1e300) {
            assert!(
                (-1e-9..=1.0 + 1e-9).contains(&((v - axis.low) / (axis.high - axis.low))),
                "{v} in {axis:?}"
            );
        }
    }

    #[test]
    fn ends_and_labels_follow_the_data() {
        let car_racing = ["-100", "0", "100", "200", "300", "400", "500", "600", "700", "800", "900", "1000"];
        check(&[-84.0, 912.3], 12, &car_racing);
        check(&[-12.0, 930.0, 908.4], 12, &car_racing);
        check(&[-200.0, -110.0], 6, &["-200", "-150", "-100", "-50", "0"]); // MountainCar
        check(&[-200.0; 5], 6, &["-200", "-150", "-100", "-50", "0"]);
        check(&[9.0, 500.0], 6, &["0", "100", "200", "300", "400", "500"]); // CartPole
        check(&[0.955], 6, &["0", "0.2", "0.4", "0.6", "0.8", "1.0"]); // MiniGrid
        check(&[0.0021, -0.0004], 6, &["-0.0005", "0", "0.0005", "0.0010", "0.0015", "0.0020", "0.0025"]);
        check(&[3e-7], 6, &["0", "5e-8", "1e-7", "1.5e-7", "2e-7", "2.5e-7", "3e-7"]);
        check(&[12_345_678.0], 6, &["0", "5e6", "1e7", "1.5e7"]);
        check(&[-1.6e9, 2e8], 4, &["-2e9", "-1e9", "0", "1e9"]);
        for nothing in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY], &[1e-310]] {
            check(nothing, 6, &["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        }
        let wide = RoundAxis::of([-1e299, 1e299], 6);
        assert!(wide.low.is_finite() && wide.high.is_finite() && wide.ticks().count() > 2, "{wide:?}");
    }
}
