"""Sections of the report that answer one question each, as Markdown; `document` puts them in order.

They read `ReportData` and nothing else. report.md and the page have the same text, so nothing is said twice.
"""
