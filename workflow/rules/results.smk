"""From scores to perplexities, tables, figures, the report and the paper: seconds, without any training."""

STUDY_FILE = f"{RESULTS}/study.json"
EVALUATIONS = [f"{folder}/evaluation.json" for folder in runs()]
# The n-gram rows under every vocabulary policy.
POLICY_EVALUATIONS = [
    f"{RESULTS}/{policy}/{model}/seed0/evaluation.json" for policy in POLICIES for model in STUDY["policy_models"]
]
POLICY_STATISTICS = [f"{RESULTS}/{policy}/tokens/corpus.json" for policy in POLICIES]
NETWORKS = runs(models_of("network"))
SWEEP_EVALUATIONS = [f"{folder}/evaluation.json" for folder in sweep_folders()]
SWEEP_TRAININGS = [f"{folder}/training.json" for folder in sweep_folders("network")]
SWEEP_STATISTICS = [
    f"{RESULTS}/{policy}/tokens/corpus.json" for policy in dict.fromkeys(point["policy"] for point in STUDY["sweeps"])
]
SWEEPS = [*SWEEP_EVALUATIONS, *SWEEP_TRAININGS, *SWEEP_STATISTICS]
CURVES = [f"{folder}/learning_curve.csv" for folder in NETWORKS]
FEATURES = [f"{folder}/features.npy" for folder in NETWORKS]
MAIN_STATISTICS = f"{MAIN}/tokens/corpus.json"
MAIN_VOCABULARY = f"{MAIN}/tokens/vocabulary.tsv"

PUBLISHED = [STUDY["published"]] if STUDY["published"] else []
MIXED_SCORES = [file for folder in runs(models_of("network", "interpolated")) for file in scores_of(f"{folder}/scores")]

UNCERTAINTY = f"{MAIN}/uncertainty.json"

TABLE_INPUTS = {
    "rows": [*EVALUATIONS, UNCERTAINTY, MAIN_STATISTICS, *PUBLISHED],
    "runs": [*EVALUATIONS, MAIN_STATISTICS],
    "compare": [*EVALUATIONS, UNCERTAINTY, MAIN_STATISTICS],
    "claims": [*EVALUATIONS, UNCERTAINTY, *CURVES, MAIN_STATISTICS, *PUBLISHED],
    "policies": [*POLICY_EVALUATIONS, *POLICY_STATISTICS, *PUBLISHED],
    "targets": [*EVALUATIONS, MAIN_STATISTICS, *PUBLISHED],
    "departures": [],  # they follow from the configuration alone
    "neighbours": [*EVALUATIONS, *FEATURES, MAIN_STATISTICS, MAIN_VOCABULARY],
}
if len(plan.ways_to_train(STUDY)) > 1:
    TABLE_INPUTS["ways"] = [*EVALUATIONS, *CURVES, MAIN_STATISTICS]
EXTENDED = runs(tables=["extended_rows"])
EXTENDED_EVALUATIONS = [f"{folder}/evaluation.json" for folder in EXTENDED]
# What is known of the n-grams of all tables beside their scores: parameters, and the time of the job that estimated each.
NGRAMS = [row for table in TABLES_OF_ROWS for row in STUDY[table] if row["kind"] in plan.DESCRIBED]
DESCRIPTIONS = [f"{MAIN}/{row['model']}/seed0/{plan.DESCRIBED[row['kind']][0]}" for row in NGRAMS]
ESTIMATIONS = [f"{BENCHMARKS}/{plan.DESCRIBED[row['kind']][1]}/{POLICY},{row['model']}.tsv" for row in NGRAMS]
EXTENDED_INPUTS = [
    *EVALUATIONS,
    *EXTENDED_EVALUATIONS,
    *(f"{folder}/training.json" for folder in runs(models_of("network"), ["rows", "extended_rows"])),
    *DESCRIPTIONS,
    MAIN_STATISTICS,
    *PUBLISHED,
]
if STUDY["extended_rows"]:
    TABLE_INPUTS["extended"] = EXTENDED_INPUTS
OOV = [f"{folder}/out_of_vocabulary.json" for folder in runs(models_of("out-of-vocabulary"), TABLES_OF_ROWS)]
if OOV:
    TABLE_INPUTS["oov"] = [*OOV, *(f"{Path(file).parent}/evaluation.json" for file in OOV), MAIN_STATISTICS]
if STUDY["sweeps"]:
    TABLE_INPUTS["sweeps"] = SWEEPS
FIGURE_INPUTS = {
    "claims": [*EVALUATIONS, UNCERTAINTY, *CURVES, MAIN_STATISTICS, *PUBLISHED],
    "rows-against-paper": [*EVALUATIONS, UNCERTAINTY, MAIN_STATISTICS, *PUBLISHED],
    "learning-curves": [*EVALUATIONS, *CURVES, MAIN_STATISTICS],
    "training-time": [*EVALUATIONS, *CURVES, MAIN_STATISTICS],
    "order": [*EVALUATIONS, MAIN_STATISTICS, *PUBLISHED],
    "classes": [*EVALUATIONS, MAIN_STATISTICS, *PUBLISHED],
    "mixture-weight": [*EVALUATIONS, *MIXED_SCORES, MAIN_STATISTICS],
    "word-frequency": [*EVALUATIONS, MAIN_STATISTICS],
    "word-features": [*EVALUATIONS, *FEATURES, MAIN_STATISTICS, MAIN_VOCABULARY],
    "policies": [*POLICY_EVALUATIONS, *POLICY_STATISTICS, *PUBLISHED],
    "extended": EXTENDED_INPUTS,
    "two-features": [
        *EXTENDED_EVALUATIONS,
        *(
            f"{MAIN}/{row['model']}/seed{seed}/features.npy"
            for row in STUDY["extended_rows"]
            if row["kind"] == "network" and row["features"] == 2
            for seed in row["seeds"]
        ),
        MAIN_STATISTICS,
        MAIN_VOCABULARY,
    ],
    "smoothing": [],  # it draws counts of its own
    **{figure: SWEEPS for figure in FIGURES if figure.startswith("sweep-")},
}
# What the module of a figure takes from others, beside `style` and `outcomes`.
FIGURE_CODE = {
    "verdicts": ["claims", "departures", "uncertainty"],
    "mixtures": ["mixture", "em", "scoring"],
    "words": ["neighbours"],
    "training": ["plan"],
    "sweeps": ["sweeps", "figures/comparisons"],
    "years": ["extended", "neural/architectures/__init__"],
    "smoothing": ["ngram/smoothed", "ngram/counts"],
}


rule write_study:
    """The resolved configuration: which rows there are, in which order, beside which published ones."""
    output:
        STUDY_FILE,
    localrule: True
    params:
        content=STUDY,
    message:
        "Writing the resolved configuration"
    run:
        write_json(output[0], params.content)


rule evaluate_scores:
    """Perplexities of one model from its score files, in all and by how often the words occur in train."""
    input:
        rules.build_tokens.output,
        arrays=scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/scores")[:-1],
        scores=f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/scores/scores.json",
        code=modules("evaluation", "scoring"),
    output:
        f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/evaluation.json",
    log:
        f"{LOGS}/evaluate_scores/{{policy}},{{model}},{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate_scores/{{policy}},{{model}},{{seed}}.tsv"
    group:
        "results"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(500),
        runtime=1,
    params:
        tokens=subpath(input[0], parent=True),
        folder=subpath(input.scores, parent=True),
    message:
        "Perplexities of {wildcards.model}, seed {wildcards.seed} (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 evaluate --tokens {params.tokens:q} --scores {params.folder:q} --output {output:q}"
        " > {log:q} 2>&1"


rule bootstrap_scores:
    """Confidence intervals of all rows, and of the differences between them, from their score files."""
    input:
        EVALUATIONS,
        [file for folder in runs() for file in scores_of(f"{folder}/scores")],
        MAIN_STATISTICS,
        PUBLISHED,
        study=STUDY_FILE,
        code=modules("uncertainty", "outcomes", "scoring"),
    output:
        UNCERTAINTY,
    log:
        f"{LOGS}/bootstrap_scores.log",
    benchmark:
        f"{BENCHMARKS}/bootstrap_scores/all.tsv"
    group:
        "results"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(700),
        runtime=2,
    params:
        results=subpath(input.study, parent=True),
    message:
        "Bootstrapping the perplexities of all rows"
    shell:
        "python -m nplm2003 bootstrap --study {input.study:q} --results {params.results:q} --output {output:q}"
        " > {log:q} 2>&1"


# One rule per table and per figure, since the path of a caption takes no wildcards.
for table, inputs in TABLE_INPUTS.items():

    rule:
        """One table, for every kind of reader: HTML (in the report), CSV, Markdown and LaTeX."""
        name:
            f"tabulate_{table}"
        input:
            inputs,
            study=STUDY_FILE,
            code=modules(
                "tables",
                "formats",
                "outcomes",
                "published",
                "uncertainty",
                "targets",
                "claims",
                "departures",
                "neighbours",
                "sweeps",
                "extended",
                "ways",
                "plan",
                "neural/architectures/__init__",
            ),
        output:
            report(
                f"{table_stem(table)}.html",
                caption=f"../report/{table}.rst",
                category="Tables",
                labels={"table": table_file(STUDY, table)},
            ),
            multiext(table_stem(table), ".csv", ".md", ".tex"),
        log:
            f"{LOGS}/tabulate_{table}.log",
        benchmark:
            f"{BENCHMARKS}/tabulate_{table}/all.tsv"
        group:
            "results"
        conda:
            "../../environment.yml"
        resources:
            mem_mb=doubling(500),
            runtime=1,
        params:
            command=f"tabulate-{table}",
            results=plan.options(results=RESULTS if inputs else None),
            stem=subpath(output[0], strip_suffix=".html"),
        message:
            f"Tabulating {table}"
        shell:
            "python -m nplm2003 {params.command} --study {input.study:q} {params.results}"
            " --output {params.stem:q} > {log:q} 2>&1"


rule tabulate_timings:
    """Seconds and memory of every job that leads to the tables and figures."""
    input:
        EVALUATIONS,
        EXTENDED_EVALUATIONS,
        POLICY_EVALUATIONS,
        SWEEP_EVALUATIONS,
        code=modules("tables"),
    output:
        report(
            f"{RESULTS}/tables/timings.csv",
            caption="../report/timings.rst",
            category="Tables",
            labels={"table": "timings"},
        ),
    log:
        f"{LOGS}/tabulate_timings.log",
    group:
        "results"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(500),
        runtime=1,
    params:
        benchmarks=BENCHMARKS,
    message:
        "Tabulating the time and memory of every job"
    shell:
        "python -m nplm2003 tabulate-timings --benchmarks {params.benchmarks:q} --output {output:q} > {log:q} 2>&1"


for figure in figures_of(STUDY):

    rule:
        """One figure, as PNG (in the report) and SVG (in the paper)."""
        name:
            f"plot_{figure}"
        input:
            FIGURE_INPUTS[figure],
            study=STUDY_FILE,
            code=figure_modules(figure),
        output:
            report(
                f"{RESULTS}/figures/{figure}.png",
                caption=f"../report/{figure}.rst",
                category="Figures",
                labels={"figure": figure},
            ),
            f"{RESULTS}/figures/{figure}.svg",
        log:
            f"{LOGS}/plot_{figure}.log",
        benchmark:
            f"{BENCHMARKS}/plot_{figure}/all.tsv"
        group:
            "results"
        conda:
            "../../environment.yml"
        resources:
            mem_mb=doubling(500),
            runtime=1,
        params:
            figure=figure,
            results=subpath(input.study, parent=True),
            stem=subpath(output[0], strip_suffix=".png"),
        message:
            f"Drawing {figure}"
        shell:
            "python -m nplm2003 plot {params.figure} --study {input.study:q} --results {params.results:q}"
            " --output {params.stem:q} > {log:q} 2>&1"


rule tables:
    input:
        [file for table in TABLE_INPUTS for file in table_files(table)],
        rules.tabulate_timings.output,
    message:
        f"The tables are in {RESULTS}/tables"


rule figures:
    input:
        [f"{RESULTS}/figures/{figure}.{suffix}" for figure in figures_of(STUDY) for suffix in ("png", "svg")],
    message:
        f"The figures are in {RESULTS}/figures"


rule write_paper:
    """The write-up as PDF; every number in it comes from the tables."""
    input:
        rules.tables.input,
        rules.figures.input,
        study=STUDY_FILE,
        source=str(ROOT / "paper" / "main.typ"),
        references=str(ROOT / "paper" / "references.bib"),
        code=modules("paper"),
    output:
        report(f"{RESULTS}/paper.pdf", caption="../report/paper.rst", category="Paper", labels={"paper": "paper"}),
    log:
        f"{LOGS}/write_paper.log",
    benchmark:
        f"{BENCHMARKS}/write_paper/all.tsv"
    group:
        "results"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(500),
        runtime=1,
    params:
        results=subpath(input.study, parent=True),
    message:
        "Typesetting the paper"
    shell:
        "python -m nplm2003 write-paper --results {params.results:q} --source {input.source:q} --output {output:q}"
        " > {log:q} 2>&1"


rule paper:
    input:
        rules.write_paper.output,
    message:
        "The paper is {input}"


rule write_configuration:
    """This run's configuration in one file, whatever files and options it came from."""
    output:
        f"{RESULTS}/configuration.json",
    localrule: True
    params:
        content=config,
    message:
        "Writing the configuration"
    run:
        write_json(output[0], params.content)


rule write_report:
    """One HTML file with every table and figure, by Snakemake's own `--report`.

    That is a second, short run of Snakemake, which reads the records of this one.
    """
    input:
        rules.tables.input,
        rules.figures.input,
        rules.paper.input,
        configuration=rules.write_configuration.output,
        snakefile=str(ROOT / "Snakefile"),
        captions=sorted(str(path) for path in (ROOT / "workflow" / "report").glob("*.rst")),
    output:
        f"{RESULTS}/report.html",
    log:
        f"{LOGS}/write_report.log",
    localrule: True
    conda:
        "../../environment.yml"
    message:
        "Writing the report"
    shell:
        "python -m snakemake --snakefile {input.snakefile:q} --configfile {input.configuration:q} --cores 1 --nolock"
        " --report {output:q} -- tables figures paper > {log:q} 2>&1"


rule report:
    input:
        rules.write_report.output,
    message:
        "The report is {input}: open it in a browser"


rule reference:
    """Copy the small result files, without any corpus text, to where they are committed. Runs whenever it is asked.

    The claims of all studies that were copied there then stand together in results/reference/claims.csv.
    """
    input:
        rules.tables.input,
        rules.figures.input,
        rules.paper.input,
        rules.report.input,
        MAIN_STATISTICS,
        POLICY_STATISTICS,
        EVALUATIONS,
        POLICY_EVALUATIONS,
        UNCERTAINTY,
        CURVES,
        SWEEPS,
        [f"{folder}/evaluation.json" for folder in EXTENDED],
        OOV,
        [f"{folder}/scores/scores.json" for folder in runs(tables=TABLES_OF_ROWS)],
        [f"{folder}/training.json" for folder in runs(models_of("network"), TABLES_OF_ROWS)],
        [f"{folder}/weights.json" for folder in runs(models_of("mixture"), TABLES_OF_ROWS)],
        DESCRIPTIONS,
        ESTIMATIONS,
        [f"{MAIN}/classes/{classes}/classes.json" for classes in CLASSES],
        study=STUDY_FILE,
    params:
        results=subpath(input.study, parent=True),
        reference=f"results/reference/{STUDY['name']}",
        first=[
            f"tables/{name}"
            for name in (f"{STUDY['table']}.csv", f"{STUDY['table']}.md", "timings.csv", "extended.csv")
            if name != "extended.csv" or STUDY["extended_rows"]
        ],
    message:
        "Copying the small results to {params.reference}"
    run:
        from nplm2003.tables import merge_claims

        for name in copy_results(input, params.results, params.reference, params.first):
            print(f"{name} is left out: it is too large", file=sys.stderr)
        merge_claims(Path(params.reference).parent)
