"""The page: static files made from the documents that revalidation writes."""
