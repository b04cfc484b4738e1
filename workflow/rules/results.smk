"""From scores to perplexities, tables, figures, the report and the paper: seconds, without any training."""

STUDY_FILE = f"{RESULTS}/study.json"
EVALUATIONS = [f"{folder}/evaluation.json" for folder in runs()]
# The n-gram rows under every vocabulary policy.
POLICY_EVALUATIONS = [
    f"{RESULTS}/{policy}/{model}/seed0/evaluation.json" for policy in POLICIES for model in STUDY["policy_models"]
]
POLICY_STATISTICS = [f"{RESULTS}/{policy}/tokens/corpus.json" for policy in POLICIES]
SCORES = [file for folder in runs() for file in scores_of(f"{folder}/scores")]
NETWORKS = runs(models_of("network"))
CURVES = [f"{folder}/learning_curve.csv" for folder in NETWORKS]
FEATURES = [f"{folder}/features.npy" for folder in NETWORKS]
MAIN_STATISTICS = f"{MAIN}/tokens/corpus.json"
MAIN_VOCABULARY = f"{MAIN}/tokens/vocabulary.tsv"

TABLES = ["table1", "policies", "targets", "departures", "neighbours"]
TABLE_COMMANDS = {"table1": "rows"}
TABLE_INPUTS = {
    "table1": [*EVALUATIONS, MAIN_STATISTICS],
    "policies": [*POLICY_EVALUATIONS, *POLICY_STATISTICS],
    "targets": [*EVALUATIONS, MAIN_STATISTICS],
    "departures": [],
    "neighbours": [*EVALUATIONS, *FEATURES, MAIN_STATISTICS, MAIN_VOCABULARY],
}
FIGURE_INPUTS = {
    "rows-against-paper": [*EVALUATIONS, MAIN_STATISTICS],
    "learning-curves": [*EVALUATIONS, *CURVES, MAIN_STATISTICS],
    "order": [*EVALUATIONS, MAIN_STATISTICS],
    "mixture-weight": [*EVALUATIONS, *SCORES, MAIN_STATISTICS],
    "word-frequency": [*EVALUATIONS, *SCORES, MAIN_STATISTICS, MAIN_VOCABULARY],
    "word-features": [*EVALUATIONS, *FEATURES, MAIN_STATISTICS, MAIN_VOCABULARY],
    "policies": [*POLICY_EVALUATIONS, *POLICY_STATISTICS],
}
FIGURE_MODULES = {figure: module for figure, (module, _) in FIGURES.items()}


rule write_study:
    """The resolved configuration: which rows there are, in which order, beside which published ones."""
    output:
        STUDY_FILE,
    params:
        content=STUDY,
    localrule: True
    message:
        "Writing the resolved configuration"
    run:
        write_json(output[0], params.content)


rule evaluate_scores:
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
    params:
        tokens=subpath(input[0], parent=True),
        folder=subpath(input.scores, parent=True),
    resources:
        mem_mb=500,
        runtime=10,
    message:
        "Perplexities of {wildcards.model}, seed {wildcards.seed} (policy {wildcards.policy})"
    shell:
        "python -m nplm2003 evaluate --tokens {params.tokens:q} --scores {params.folder:q} --output {output:q}"
        " > {log:q} 2>&1"


rule tabulate_results:
    input:
        lambda wildcards: TABLE_INPUTS[wildcards.table],
        study=STUDY_FILE,
        code=modules("tables", "formats", "outcomes", "targets", "departures", "neighbours"),
    output:
        report(
            f"{RESULTS}/tables/{{table}}.html",
            caption="../report/{table}.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
        multiext(f"{RESULTS}/tables/{{table}}", ".csv", ".md", ".tex"),
    wildcard_constraints:
        table=any_of(TABLES),
    log:
        f"{LOGS}/tabulate_results/{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/tabulate_results/{{table}}.tsv"
    params:
        command=lambda wildcards: TABLE_COMMANDS.get(wildcards.table, wildcards.table),
        # The departures follow from the configuration alone.
        results=lambda wildcards: "" if wildcards.table == "departures" else options(results=RESULTS),
        stem=subpath(output[0], strip_suffix=".html"),
    resources:
        mem_mb=500,
        runtime=10,
    message:
        "Tabulating {wildcards.table}"
    shell:
        "python -m nplm2003 tabulate-{params.command} --study {input.study:q} {params.results}"
        " --output {params.stem:q} > {log:q} 2>&1"


rule tabulate_timings:
    """Seconds and memory of every job that leads to the tables and figures."""
    input:
        EVALUATIONS,
        POLICY_EVALUATIONS,
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
    params:
        benchmarks=BENCHMARKS,
    resources:
        mem_mb=500,
        runtime=10,
    message:
        "Tabulating the time and memory of every job"
    shell:
        "python -m nplm2003 tabulate-timings --benchmarks {params.benchmarks:q} --output {output:q} > {log:q} 2>&1"


rule plot_figure:
    input:
        lambda wildcards: FIGURE_INPUTS[wildcards.figure],
        study=STUDY_FILE,
        code=lambda wildcards: modules("figures/style", f"figures/{FIGURE_MODULES[wildcards.figure]}", "outcomes"),
    output:
        report(
            f"{RESULTS}/figures/{{figure}}.png",
            caption="../report/{figure}.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        f"{RESULTS}/figures/{{figure}}.svg",
    wildcard_constraints:
        figure=any_of(FIGURES),
    log:
        f"{LOGS}/plot_figure/{{figure}}.log",
    benchmark:
        f"{BENCHMARKS}/plot_figure/{{figure}}.tsv"
    params:
        results=RESULTS,
        stem=subpath(output[0], strip_suffix=".png"),
    resources:
        mem_mb=1000,
        runtime=10,
    message:
        "Drawing {wildcards.figure}"
    shell:
        "python -m nplm2003 plot {wildcards.figure} --study {input.study:q} --results {params.results:q}"
        " --output {params.stem:q} > {log:q} 2>&1"


rule tables:
    input:
        [file for table in TABLES for file in table_files(table)],
        rules.tabulate_timings.output,


rule figures:
    input:
        [f"{RESULTS}/figures/{figure}.{suffix}" for figure in FIGURES for suffix in ("png", "svg")],


rule write_paper:
    input:
        rules.tables.input,
        rules.figures.input,
        STUDY_FILE,
        source=str(ROOT / "paper" / "main.typ"),
        code=modules("paper"),
    output:
        report(f"{RESULTS}/paper.pdf", caption="../report/paper.rst", category="Paper", labels={"paper": "paper"}),
    log:
        f"{LOGS}/write_paper.log",
    benchmark:
        f"{BENCHMARKS}/write_paper/all.tsv"
    params:
        results=RESULTS,
    resources:
        mem_mb=500,
        runtime=10,
    message:
        "Typesetting the paper"
    shell:
        "python -m nplm2003 write-paper --results {params.results:q} --source {input.source:q} --output {output:q}"
        " > {log:q} 2>&1"


rule paper:
    input:
        rules.write_paper.output,


rule write_report:
    """One HTML file with every table and figure: Snakemake reads its own records, so this is a second, short run."""
    input:
        rules.tables.input,
        rules.figures.input,
        rules.paper.input,
    output:
        f"{RESULTS}/report.html",
    log:
        f"{LOGS}/write_report.log",
    params:
        snakefile=str(ROOT / "Snakefile"),
        configuration=config,
        stylesheet=str(ROOT / "workflow" / "report" / "report.css"),
    localrule: True
    message:
        "Writing the report {output}"
    run:
        import yaml

        with whole(f"{RESULTS}/report-configuration.yaml") as overlay:
            overlay.write_text(yaml.safe_dump(dict(params.configuration)), encoding="utf-8")
            with whole(output[0]) as page:
                shell(
                    "python -m snakemake --snakefile {params.snakefile:q} --configfile {overlay:q} --nolock --cores 1"
                    " --report {page:q} --report-stylesheet {params.stylesheet:q} -- tables figures paper"
                    " > {log:q} 2>&1"
                )


rule report:
    input:
        rules.write_report.output,
