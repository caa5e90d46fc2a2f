//! Plots of a table as SVG pictures.

use foveate_explain::charts::{
    AgentMean, ConditionRow, ConditionsHead, Panel, condition_means, condition_panels,
};

use super::table::{AgentColumn, StressRow, StressTable};
use super::text::{NO_EFFECT, count};

const SPREAD: &str = "a thick line is the 95 % interval of the mean of that row alone (not corrected for the number of rows), \
                      a thin one mean ± standard deviation";
const SINGLE: &str = "one episode per row: no interval, no standard deviation";
/// The largest severity.
const MOST: u32 = 5;

/// Every row that is not part of a curve: means with their intervals, all agents side by side, and published
/// results.
pub fn overview(table: &StressTable) -> String {
    // One agent's published results are drawn.
    let released = table.agents.iter().find(|agent| agent.has_published());
    let rows: Vec<_> = (0..table.agents.first().map_or(0, |agent| agent.rows.len()))
        .filter(|&i| table.agents[0].rows[i].curve.is_none())
        .map(|i| {
            let first = &table.agents[0].rows[i];
            let of_agent = |agent: &AgentColumn| agent_mean(&agent.rows[i]);
            let published = released.and_then(|agent| agent.rows[i].published).map(|p| AgentMean {
                mean: p.mean,
                interval: None,
                deviation: Some(p.std),
            });
            let all = || table.agents.iter().map(|agent| &agent.rows[i]);
            let name = marked(&first.name, all().all(|row| row.no_effect));
            (name, table.agents.iter().map(of_agent).collect::<Vec<_>>(), published)
        })
        .collect();
    let rows: Vec<ConditionRow<'_>> =
        rows.iter().map(|(name, means, published)| (&**name, means.clone(), *published)).collect();
    let subtitle = if table.episodes == 1 { SINGLE } else { SPREAD };
    let others = released.map(|agent| format!("published for {} (mean ± standard deviation)", agent.name));
    let (title, agents) = (heading(table), names(table));
    let head = ConditionsHead {
        title: &title,
        subtitle,
        agents: &agents,
        others: others.as_deref(),
        goal: table.solved_at,
    };
    condition_means(&head, &rows)
}

/// Mean return over severity, one panel per shift; `None` when the table holds no curve.
pub fn curves(table: &StressTable) -> Option<String> {
    let mut curves: Vec<&str> = vec![];
    for name in table.agents.iter().flat_map(|agent| &agent.rows).filter_map(|row| row.curve.as_deref()) {
        if !curves.contains(&name) {
            curves.push(name);
        }
    }
    if curves.is_empty() {
        return None;
    }
    // The unmodified world is the first point of every curve.
    let of_curve = |agent: &AgentColumn, name: &str| {
        let rows = agent.rows.iter().enumerate();
        rows.filter(|(i, row)| *i == 0 || row.curve.as_deref() == Some(name))
            .filter(|(_, row)| row.skipped.is_none())
            .map(|(_, row)| (row.severity.unwrap_or(0.0), row.summary.mean, row.summary.ci95))
            .collect()
    };
    let rows_of = |name: &str| {
        let rows = table.agents.iter().flat_map(|agent| &agent.rows);
        rows.filter(|row| row.curve.as_deref() == Some(name)).collect::<Vec<_>>()
    };
    let titles: Vec<(&str, String)> = curves
        .into_iter()
        .map(|name| (name, marked(name, rows_of(name).iter().all(|row| row.no_effect))))
        .collect();
    let panels: Vec<Panel<'_>> = titles
        .iter()
        .map(|(name, title)| (&**title, table.agents.iter().map(|agent| of_curve(agent, name)).collect()))
        .collect();
    let at = table.agents.first().and_then(|agent| agent.rows.iter().find(|row| row.curve.is_some()));
    let since = at
        .and_then(|row| row.name.split_once('@'))
        .map_or(String::new(), |(_, step)| format!(", switched on at step {step}"));
    let intervals = if table.episodes == 1 {
        "one episode per point: no interval"
    } else {
        "band: 95 % interval of each point alone, not corrected for their number"
    };
    let subtitle = format!("mean return over severity (0: unmodified){since}; {intervals}");
    let (title, agents) = (heading(table), names(table));
    let head = ConditionsHead {
        title: &title,
        subtitle: &subtitle,
        agents: &agents,
        others: None,
        goal: table.solved_at,
    };
    Some(condition_panels(&head, MOST, &panels))
}

/// A row's name, with a remark when it changed nothing for any agent.
fn marked(name: &str, no_effect: bool) -> String {
    if no_effect { format!("{name} ({NO_EFFECT})") } else { name.to_owned() }
}

/// What is drawn of a row; nothing of one that was not run.
fn agent_mean(StressRow { summary, skipped, .. }: &StressRow) -> Option<AgentMean> {
    if skipped.is_some() {
        return None;
    }
    Some(AgentMean { mean: summary.mean, interval: summary.ci95, deviation: summary.std })
}

fn names(table: &StressTable) -> Vec<&str> {
    table.agents.iter().map(|agent| &*agent.name).collect()
}

fn heading(table: &StressTable) -> String {
    let base: String = table.base.iter().flat_map(|text| [", ", text]).collect();
    format!(
        "{}, picture {}{base}: {} per row, seed {}",
        table.env,
        table.picture,
        count(table.episodes, "episode"),
        table.seed
    )
}
