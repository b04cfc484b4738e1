"""The networks (section 2): trained on train, the epoch chosen on valid, scored once on everything."""


rule write_preset:
    """One preset as a file of its own, so that a change of it trains again what uses it and nothing else."""
    output:
        f"{RESULTS}/presets/{{preset}}.json",
    wildcard_constraints:
        preset=any_of(STUDY["presets"]),
    priority: 20  # before any training: it may be waited for
    localrule: True
    params:
        content=lambda wildcards: {"presets": {wildcards.preset: STUDY["presets"][wildcards.preset]}},
    message:
        "Writing the preset {wildcards.preset}"
    run:
        write_json(output[0], params.content)


rule train_network:
    """A killed training goes on from its last finished epoch: the checkpoints are not an output, so they stay."""
    input:
        rules.build_tokens.output,
        unpack(class_files),
        preset=preset_file,
        code=network_code,
    output:
        multiext(
            f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/",
            "weights.pt",
            "features.npy",
            "learning_curve.csv",
            "training.json",
        ),
    log:
        f"{LOGS}/train_network/{{policy}},{{model}},{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/train_network/{{policy}},{{model}},{{seed}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("network")),
    priority: 10
    conda:
        "../../environment.yml"
    threads: STUDY["threads"] * PROCESSES
    resources:
        mem_mb=doubling(3000 * PROCESSES),
        runtime=720,
    params:
        row=network_options,
        threads=lambda wildcards, threads: max(1, threads // PROCESSES),  # of each process
        classes=lambda wildcards, input: plan.options(classes=input.get("classes")),
        tokens=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Training {wildcards.model}, seed {wildcards.seed} (log: {log})"
    shell:
        "python -m nplm2003 train --tokens {params.tokens:q} {params.row} {params.classes} --preset-file {input.preset:q}"
        " --seed {wildcards.seed} --threads {params.threads} --output {params.folder:q} 2>> {log:q}"


rule score_network:
    """The log-probability of every token under a trained network."""
    input:
        rules.build_tokens.output,
        network=rules.train_network.output[0],
        training=rules.train_network.output[3],
        code=modules("neural/model", "neural/outputs", "neural/data", "neural/scoring", "scoring"),
    output:
        scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/scores"),
    log:
        f"{LOGS}/score_network/{{policy}},{{model}},{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/score_network/{{policy}},{{model}},{{seed}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("network")),
    group:
        "scoring"
    conda:
        "../../environment.yml"
    threads: STUDY["threads"]
    resources:
        mem_mb=doubling(1500),
        runtime=90,
    params:
        tokens=subpath(input[0], parent=True),
        network=subpath(input.network, parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Scoring every token with {wildcards.model}, seed {wildcards.seed}"
    shell:
        "python -m nplm2003 score --tokens {params.tokens:q} --network {params.network:q}"
        " --model {wildcards.model} --threads {threads} --output {params.folder:q} > {log:q} 2>&1"


rule build_every_word:
    """The same tokens with every word of the stream in the vocabulary: who the merged words are."""
    input:
        CORPUS_FILES,
        code=rules.build_tokens.input.code,
    output:
        multiext(f"{MAIN}/every-word/", "train.npy", "valid.npy", "test.npy", "vocabulary.tsv", "corpus.json"),
    log:
        f"{LOGS}/build_every_word.log",
    benchmark:
        f"{BENCHMARKS}/build_every_word/all.tsv"
    group:
        "tokens"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=5,
    params:
        corpus=plan.corpus_options(STUDY, POLICY, count_on="stream", cut="frequency", size=0),
        folder=subpath(output[0], parent=True),
    message:
        "Building the token ids of every word"
    shell:
        "python -m nplm2003 build-tokens {params.corpus} --output {params.folder:q} > {log:q} 2>&1"


rule score_out_of_vocabulary:
    """The log-probability of every token under a network that gives features to words outside the vocabulary."""
    input:
        rules.build_tokens.output,
        component_scores,
        unpack(component_network),
        every=f"{RESULTS}/{{policy}}/every-word/corpus.json",
        code=modules("neural/out_of_vocabulary", "neural/model", "neural/outputs", "neural/scoring", "scoring"),
    output:
        scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/scores"),
        words=f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/out_of_vocabulary.json",
    log:
        f"{LOGS}/score_out_of_vocabulary/{{policy}},{{model}},{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/score_out_of_vocabulary/{{policy}},{{model}},{{seed}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("out-of-vocabulary")),
    group:
        "scoring"
    conda:
        "../../environment.yml"
    threads: STUDY["threads"]
    resources:
        mem_mb=doubling(3000),
        runtime=60,
    params:
        tokens=subpath(input[0], parent=True),
        every=subpath(input.every, parent=True),
        network=subpath(input.network, parent=True),
        plain=subpath(input.plain, parent=True),
        folder=subpath(output[0], parent=True),
        features=row_value("weights"),
    message:
        "Scoring every token with {wildcards.model}, seed {wildcards.seed}"
    shell:
        "python -m nplm2003 score-oov --tokens {params.tokens:q} --every-word {params.every:q}"
        " --network {params.network:q} --scores {params.plain:q} --features {params.features} --model {wildcards.model}"
        " --threads {threads} --output {params.folder:q} --words-output {output.words:q} > {log:q} 2>&1"
