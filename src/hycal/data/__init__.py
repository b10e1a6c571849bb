"""Where labelled images and embeddings come from: folders, manifests, published data sets."""
