def show(view):
    pass
