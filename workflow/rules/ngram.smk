"""The n-gram baselines (section 4.1): modified Kneser-Ney by KenLM and the interpolated trigram."""

LMPLZ = "data/tools/lmplz"


rule build_lmplz:
    """KenLM's estimator: the one on PATH, or built once from its source archive."""
    output:
        LMPLZ,
    log:
        f"{LOGS}/build_lmplz.log",
    benchmark:
        f"{BENCHMARKS}/build_lmplz/all.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=20,
    message:
        "Finding or building lmplz (about a minute, once)"
    shell:
        "python -m nplm2003 build-lmplz --output {output:q} > {log:q} 2>&1"


rule estimate_kneser_ney:
    """A modified Kneser-Ney n-gram on train, as an ARPA file of token ids."""
    input:
        rules.build_tokens.output,
        lmplz=LMPLZ,
        code=modules("ngram/kneser_ney"),
    output:
        model=f"{RESULTS}/{{policy}}/{{model}}/seed0/model.arpa",
        description=f"{RESULTS}/{{policy}}/{{model}}/seed0/model.json",
    log:
        f"{LOGS}/estimate_kneser_ney/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/estimate_kneser_ney/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("kneser-ney")),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        order=row_value("order"),
        tokens=subpath(input[0], parent=True),
    message:
        "Estimating {wildcards.model} with lmplz (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 estimate-kneser-ney --tokens {params.tokens:q} --order {params.order}"
        " --lmplz {input.lmplz:q} --output {output.model:q} > {log:q} 2>&1"


rule score_kneser_ney:
    """The log-probability of every token under a Kneser-Ney n-gram."""
    input:
        rules.build_tokens.output,
        model=rules.estimate_kneser_ney.output.model,
        code=modules("ngram/kneser_ney", "scoring"),
    output:
        scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed0/scores"),
    log:
        f"{LOGS}/score_kneser_ney/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/score_kneser_ney/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("kneser-ney")),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        tokens=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Scoring every token with {wildcards.model} (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 score-kneser-ney --tokens {params.tokens:q} --model-file {input.model:q}"
        " --model {wildcards.model} --output {params.folder:q} > {log:q} 2>&1"


rule estimate_interpolated:
    """Weights of the interpolated trigram per frequency bin, by EM on validation."""
    input:
        rules.build_tokens.output,
        code=modules("ngram/interpolated", "em"),
    output:
        f"{RESULTS}/{{policy}}/{{model}}/seed0/weights.json",
    log:
        f"{LOGS}/estimate_interpolated/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/estimate_interpolated/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("interpolated")),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        tokens=subpath(input[0], parent=True),
    message:
        "Estimating the interpolated trigram (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 estimate-interpolated --tokens {params.tokens:q} --output {output:q} > {log:q} 2>&1"


rule score_interpolated:
    """The log-probability of every token under the interpolated trigram."""
    input:
        rules.build_tokens.output,
        weights=rules.estimate_interpolated.output,
        code=modules("ngram/interpolated", "scoring"),
    output:
        scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed0/scores"),
    log:
        f"{LOGS}/score_interpolated/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/score_interpolated/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("interpolated")),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        tokens=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Scoring every token with the interpolated trigram (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 score-interpolated --tokens {params.tokens:q} --weights {input.weights:q}"
        " --model {wildcards.model} --output {params.folder:q} > {log:q} 2>&1"
