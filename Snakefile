"""The study, end to end: raw corpus -> token ids -> models -> scores -> tables, figures, report and paper.

    snakemake --cores all                                   the Brown experiment of the paper
    snakemake --cores all --configfile config/demo.yaml     a small one, on a corpus that needs no download
    snakemake --cores all tables | figures | report | paper | all
    snakemake --cores all reference                         copy the small results to results/reference/
    snakemake --cores all explorer                          a page to try the models in a browser

Every model ends in the log-probability of every token (src/nplm2003/scoring.py); everything after reads only those.
"""


# The defaults lie beside this file, whichever folder a run works in; --configfile overlays them.
configfile: f"{workflow.basedir}/config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/ngram.smk"
include: "workflow/rules/neural.smk"
include: "workflow/rules/mixture.smk"
include: "workflow/rules/results.smk"
include: "workflow/rules/explorer.smk"


onstart:
    # To keep to its default of 100 new jobs a second Snakemake 9 looks for ready jobs once more a second after each look,
    # so more and more often, until that takes a tenth of two cores. Only a limit that somebody asked for is worth it.
    if workflow.scheduler.job_rate_limiter and workflow.scheduler.job_rate_limiter.max_jobs == 100:
        workflow.scheduler.job_rate_limiter = None


localrules:
    all,
    tables,
    figures,
    paper,
    report,
    reference,
    explorer,


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.paper.input,
        rules.report.input,
    message:
        f"All of the study is there: open {RESULTS}/report.html"
