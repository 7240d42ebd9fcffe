"""The race of the methods: questions before runs, every seed, "no difference" where there is none.

    questions     data/race.json, committed before the first run
    world, small  a policy of a few thousand weights; a run takes a fifth of a second to four
    large         the shipped 0.3M models
    rows          the arms of every question
    running       pilots, learning rates, race: resumable, in processes
    verdicts      paired bootstrap over seeds; better, worse, no difference larger than s
    python -m rlnb.training.studies.race ROW|all --out DIR

Nothing is imported here.
"""
