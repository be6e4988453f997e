"""What the real OpenTelemetry SDK collected."""


def points(reader):
    """Return every data point, by the name of its instrument."""
    found = {}
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data else []:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                found.setdefault(metric.name, []).extend(metric.data.data_points)
    return found


def measured(reader, name):
    """Return the data points of one instrument."""
    return points(reader).get(name, [])


def values(reader, name):
    """Return the values of a counter or gauge, by its attributes."""
    return {frozenset(p.attributes.items()): p.value for p in measured(reader, name)}
