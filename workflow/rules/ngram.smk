"""The n-gram baselines (section 4.1): modified Kneser-Ney by KenLM, class-based, the interpolated trigram; older ones."""

LMPLZ = "data/tools/lmplz"
CLASSES = sorted({row["classes"] for row in ROWS if row["kind"] in ("class-based", "network") and row["classes"]})


rule build_lmplz:
    """KenLM's estimator: the one on PATH, or built once from its source archive.

    Not a job of a cluster, whose machines often see no internet.
    """
    output:
        LMPLZ,
    log:
        f"{LOGS}/build_lmplz.log",
    benchmark:
        f"{BENCHMARKS}/build_lmplz/all.tsv"
    localrule: True
    conda:
        "../../environment.yml"
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
    group:
        "ngrams"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=2,
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
    group:
        "ngrams"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=2,
    params:
        tokens=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Scoring every token with {wildcards.model} (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 score-kneser-ney --tokens {params.tokens:q} --model-file {input.model:q}"
        " --model {wildcards.model} --output {params.folder:q} > {log:q} 2>&1"


rule learn_classes:
    """Word classes by the exchange algorithm, shared by all rows with the same number of classes."""
    input:
        rules.build_tokens.output,
        code=modules("ngram/classes"),
    output:
        classes=f"{RESULTS}/{{policy}}/classes/{{classes}}/classes.tsv",
        description=f"{RESULTS}/{{policy}}/classes/{{classes}}/classes.json",
    log:
        f"{LOGS}/learn_classes/{{policy}},{{classes}}.log",
    benchmark:
        f"{BENCHMARKS}/learn_classes/{{policy}},{{classes}}.tsv"
    wildcard_constraints:
        classes=any_of(CLASSES or ["-"]),
    group:
        "classes"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(750),
        runtime=15,
    params:
        tokens=subpath(input[0], parent=True),
    message:
        "Learning {wildcards.classes} word classes (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 learn-classes --tokens {params.tokens:q} --classes {wildcards.classes}"
        " --output {output.classes:q} > {log:q} 2>&1"


rule estimate_class_based:
    """A modified Kneser-Ney n-gram over the classes of the words of train."""
    input:
        rules.build_tokens.output,
        unpack(class_files),
        lmplz=LMPLZ,
        code=modules("ngram/class_based", "ngram/classes", "ngram/kneser_ney"),
    output:
        model=f"{RESULTS}/{{policy}}/{{model}}/seed0/model.arpa",
        description=f"{RESULTS}/{{policy}}/{{model}}/seed0/model.json",
    log:
        f"{LOGS}/estimate_class_based/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/estimate_class_based/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("class-based")),
    group:
        "ngrams"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=2,
    params:
        order=row_value("order"),
        tokens=subpath(input[0], parent=True),
    message:
        "Estimating {wildcards.model} with lmplz (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 estimate-class-based --tokens {params.tokens:q} --classes {input.classes:q}"
        " --order {params.order} --lmplz {input.lmplz:q} --output {output.model:q} > {log:q} 2>&1"


rule score_class_based:
    """The log-probability of every token under a class-based n-gram."""
    input:
        rules.build_tokens.output,
        unpack(class_files),
        model=rules.estimate_class_based.output.model,
        code=modules("ngram/class_based", "ngram/classes", "ngram/kneser_ney", "scoring"),
    output:
        scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed0/scores"),
    log:
        f"{LOGS}/score_class_based/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/score_class_based/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("class-based")),
    group:
        "ngrams"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=2,
    params:
        tokens=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Scoring every token with {wildcards.model} (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 score-class-based --tokens {params.tokens:q} --classes {input.classes:q}"
        " --model-file {input.model:q} --model {wildcards.model} --output {params.folder:q} > {log:q} 2>&1"


rule estimate_interpolated:
    """Weights of the interpolated trigram per frequency bin, by EM on validation."""
    input:
        rules.build_tokens.output,
        code=modules("ngram/interpolated", "ngram/counts", "em"),
    output:
        f"{RESULTS}/{{policy}}/{{model}}/seed0/weights.json",
    log:
        f"{LOGS}/estimate_interpolated/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/estimate_interpolated/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("interpolated")),
    group:
        "ngrams"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=2,
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
        code=modules("ngram/interpolated", "ngram/counts", "scoring"),
    output:
        scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed0/scores"),
    log:
        f"{LOGS}/score_interpolated/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/score_interpolated/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("interpolated")),
    group:
        "ngrams"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=2,
    params:
        tokens=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Scoring every token with the interpolated trigram (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 score-interpolated --tokens {params.tokens:q} --weights {input.weights:q}"
        " --model {wildcards.model} --output {params.folder:q} > {log:q} 2>&1"


rule estimate_smoothed:
    """The parameters of an n-gram smoothed as before Kneser and Ney, from counts of train and, for add-k, validation."""
    input:
        rules.build_tokens.output,
        code=modules("ngram/smoothed", "ngram/counts"),
    output:
        f"{RESULTS}/{{policy}}/{{model}}/seed0/smoothing.json",
    log:
        f"{LOGS}/estimate_smoothed/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/estimate_smoothed/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of(*SMOOTHED_KINDS)),
    group:
        "ngrams"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=2,
    params:
        kind=row_value("kind"),
        order=row_value("order"),
        tokens=subpath(input[0], parent=True),
    message:
        "Estimating {wildcards.model} (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 estimate-smoothed --tokens {params.tokens:q} --kind {params.kind} --order {params.order}"
        " --output {output:q} > {log:q} 2>&1"


rule score_smoothed:
    """The log-probability of every token under such an n-gram."""
    input:
        rules.build_tokens.output,
        smoothing=rules.estimate_smoothed.output,
        code=modules("ngram/smoothed", "ngram/counts", "scoring"),
    output:
        scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed0/scores"),
    log:
        f"{LOGS}/score_smoothed/{{policy}},{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/score_smoothed/{{policy}},{{model}}.tsv"
    wildcard_constraints:
        model=any_of(models_of(*SMOOTHED_KINDS)),
    group:
        "ngrams"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=2,
    params:
        tokens=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Scoring every token with {wildcards.model} (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 score-smoothed --tokens {params.tokens:q} --smoothing {input.smoothing:q}"
        " --model {wildcards.model} --output {params.folder:q} > {log:q} 2>&1"
