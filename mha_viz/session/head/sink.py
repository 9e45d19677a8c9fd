def show(view): pass
