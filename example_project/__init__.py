"""A small site that uses django-jobqueue the way any other site would."""
