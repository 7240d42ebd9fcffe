"""Where models come from and how they are held in memory.

    loading         a folder or a hub id -> model and tokenizer; back to a folder
    hub             which folder that is
    small_model     the small model and its tokenizer, freshly initialised
    presets         its sizes
    base_training   supervised training on a task's demonstrations
    critic          values beside the policy
    adapters        LoRA: small trained factors beside frozen weights
    optimizers      AdamW, with moments of four bytes or of one; the scale of a float16 loss
    precision       number formats, and activations that are computed again

Nothing is imported here: `presets` needs no torch, `loading` needs transformers.
"""
