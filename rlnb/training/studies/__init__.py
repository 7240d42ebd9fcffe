"""What was measured with the training code, as commands and functions that measure it again.

    shipped_runs   the runs in data/runs that compare switches: python -m ... lists and records them
    controls       what the base could do before training: data/runs/chain_controls.json
    direct_only    pay for direct answers alone: data/runs/chain_direct_only.json
    many_answers   pass@k up to 32, before and after: data/runs/chain_many_answers.json
    group_noise    the noise of a step by group size: data/runs/chain_group_noise.json
    race           small policies and the 0.3M models, method against method: data/runs/race
    preferences    DPO on pairs of the model's own answers: data/runs/chain_preferences.json
    stop_push      what an estimator does to the decision to stop, without training
    gpu_budget     memory of a step, counted from shapes: for explorer, plans and trainer
    gpu_time       its time: a bound from data sheets, an estimate by class of kernel
    gpu_plans      what page 21 trains on a card, by its bytes and its minutes
    by_card        what to type on a card of 8, 16, 24 or 80 GB, for a pretrained model

Nothing is imported here.
"""
