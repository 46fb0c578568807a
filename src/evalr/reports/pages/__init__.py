"""A report as one page of HTML: no script, no network, light and dark, and fit for paper.

What the page shows is put together here as plain data; templates lay it out. Every text passes through one place on its
way into the page, which makes visible what could hide, cuts what is too long, and escapes the rest.
"""

from evalr.reports.pages.report import html_page

__all__ = ["html_page"]
