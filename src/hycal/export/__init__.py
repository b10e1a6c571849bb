"""A classifier as an ONNX graph that answers without hycal.

Methods describe their scores with it; commands write the file.
It never computes an answer itself.
"""
