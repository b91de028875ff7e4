"""What is published of a sweep: tables, comparisons, figures, report and page. Nothing here runs a trial."""
