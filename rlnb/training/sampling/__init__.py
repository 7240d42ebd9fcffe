"""Drawing answers from a model, and scoring answers that were drawn.

    prompts         what a model is asked, token by token; where an answer may end
    sampler         draws on transformers' cache; Sampling and Rollout
    graph_decoder   the same for a GPU: fixed buffers, CUDA graphs
    rooms           its memory; room_size counts the bytes
    capture         its graphs, and what a failed capture needs mended
    scoring         teacher forcing: log-probabilities and entropies
    sliced_head     the logits of a large vocabulary, never all at once

Nothing is imported here: of these, only drawing loads transformers, when it is asked to.
"""
