"""The journey of a text through one attention layer: a moving picture of each step.

`scene` says what a picture consists of, `layer` holds the arrays and the cell that is followed,
`cells` turns the arrays into images, and `setting` adds room, sizes and colours. A step is a
function from a `Setting` to a `Scene`; `steps` names all twelve. `heads` lays out split, view,
transpose and merge, `rows` the mask and the softmax, `products` the steps that multiply. Nothing
here draws: a page plays the scenes in the browser, and `still` makes a Plotly figure of the last
frame.
"""
