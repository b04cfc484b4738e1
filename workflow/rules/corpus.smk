"""Raw corpus to token ids on disk."""

if DOWNLOAD:

    rule fetch_corpus:
        """Bring the corpus: from its public address, or from a mirror, a folder or a file (config key `mirror`).

        Its size and checksum are pinned, so neither the code nor the mirror is a reason to fetch it again; the mirror
        travels in the environment (common.smk). Standard error is left alone for the progress bar. Not a job of a
        cluster, whose machines often see no internet.
        """
        output:
            DOWNLOAD,
        benchmark:
            f"{BENCHMARKS}/fetch_corpus/all.tsv"
        localrule: True
        conda:
            "../../environment.yml"
        params:
            source=STUDY["corpus"]["source"],
        message:
            "Fetching the corpus {params.source}"
        shell:
            "python -m nplm2003 fetch --corpus {params.source} --output {output:q}"


rule build_tokens:
    """The vocabulary of one policy and the three splits as memory-mapped arrays."""
    input:
        CORPUS_FILES,
        code=modules(
            "vocabulary",
            "normalisation",
            "corpora/__init__",
            *(f"corpora/{module}" for module in SOURCES[STUDY["corpus"]["source"]]),
        ),
    output:
        multiext(f"{RESULTS}/{{policy}}/tokens/", "train.npy", "valid.npy", "test.npy", "vocabulary.tsv", "corpus.json"),
    log:
        f"{LOGS}/build_tokens/{{policy}}.log",
    benchmark:
        f"{BENCHMARKS}/build_tokens/{{policy}}.tsv"
    wildcard_constraints:
        policy=any_of(POLICIES),
    group:
        "tokens"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=5,
    params:
        corpus=corpus_options,
        folder=subpath(output[0], parent=True),
    message:
        "Building the vocabulary and token ids of policy {wildcards.policy}"
    shell:
        "python -m nplm2003 build-tokens {params.corpus} --output {params.folder:q} > {log:q} 2>&1"


rule cut_tokens:
    """The tokens of the study with a share of train alone, as a policy of their own: every model runs on them unchanged."""
    input:
        tokens=f"{MAIN}/tokens/corpus.json",
        code=modules("vocabulary"),
    output:
        multiext(f"{RESULTS}/{{policy}}/tokens/", "train.npy", "valid.npy", "test.npy", "vocabulary.tsv", "corpus.json"),
    log:
        f"{LOGS}/cut_tokens/{{policy}}.log",
    benchmark:
        f"{BENCHMARKS}/cut_tokens/{{policy}}.tsv"
    wildcard_constraints:
        policy=any_of(STUDY["cuts"] or ["-"]),
    group:
        "tokens"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(500),
        runtime=1,
    params:
        share=lambda wildcards: STUDY["cuts"][wildcards.policy],
        tokens=subpath(input.tokens, parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Keeping {params.share} of the training tokens"
    shell:
        "python -m nplm2003 cut-tokens --tokens {params.tokens:q} --share {params.share} --output {params.folder:q}"
        " > {log:q} 2>&1"
