"""From images and texts to unit embeddings."""
