"""Ready pictures for the pages: each draws one idea and says it in its caption."""
