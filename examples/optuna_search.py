"""Optuna searches settings of a recipe: CMA-ES on CartPole-v1. Trials that fall behind at a validation are pruned.

    pip install . optuna                      # in the root of a clone
    python examples/optuna_search.py          # 12 trials, about 20 seconds on two cores
"""

import argparse

import foveate
import optuna

#: Steps from one validation to the next.
EVERY = 4000


def settings(trial):
    """Keys of the recipe; `foveate list settings` shows them all."""
    stage = {
        "name": "search",
        "algorithm": "cma-es",
        "sigma": trial.suggest_float("sigma", 0.03, 3.0, log=True),
        "population": trial.suggest_int("population", 8, 48, step=8),
        "tracks": trial.suggest_int("tracks", 1, 8),
        "steps": 20_000,
    }
    # Few episodes, for speed: a trial is judged by 20, the best of them should be judged by more.
    selection = {"every": EVERY, "tracks": 20, "finalists": 1, "final_tracks": 20, "report_tracks": 20}
    return {"recipe.stage": [stage], "recipe.selection": selection}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--runs", default="runs/optuna", help="the folder of the runs")
    arguments = parser.parse_args()

    def objective(trial):
        best = float("-inf")

        def validated(event):
            nonlocal best
            if event["event"] == "validation":
                best = max(best, event["mean"])
                trial.report(best, event["steps"] // EVERY)
                if trial.should_prune():
                    raise optuna.TrialPruned  # stops the training and comes out of `train`

        foveate.train(
            "gym:CartPole-v1", set=settings(trial), runs=arguments.runs, name=f"trial-{trial.number}", videos=False, progress=False,
            callback=validated,
        )
        return best

    pruner = optuna.pruners.MedianPruner(n_startup_trials=3)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=1), pruner=pruner)
    study.optimize(objective, n_trials=arguments.trials)
    pruned = study.get_trials(states=[optuna.trial.TrialState.PRUNED])
    best = foveate.evaluate(f"{arguments.runs}/trial-{study.best_trial.number}", "gym:CartPole-v1", episodes=100)
    print(f"{len(study.trials)} trials, {len(pruned)} pruned; best: {study.best_params}, {best}")


if __name__ == "__main__":
    main()
