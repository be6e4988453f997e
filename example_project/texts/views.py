"""The pages: a form that enqueues a task, and its result."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from . import outcome
from .forms import TextForm
from .framework import TaskResultDoesNotExist, TaskResultMismatch
from .tasks import describe


@require_http_methods(["GET", "HEAD", "POST"])
def form(request: HttpRequest) -> HttpResponse:
    """Show the form; enqueue the task for what it holds."""
    form = TextForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        result = describe.enqueue(form.cleaned_data["text"], outages=form.cleaned_data["outages"])
        return redirect("texts:result", result.id)
    return render(request, "texts/form.html", {"form": form}, status=422 if form.errors else 200)


@require_GET
def result(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show how the task stands, and in the end what it found or why it failed."""
    try:
        found = describe.get_result(str(pk))
    except (TaskResultDoesNotExist, TaskResultMismatch):
        raise Http404("There is no such text; old ones are purged.") from None
    context = {"result": found, "active": not found.is_finished, **outcome.shown(found)}
    return render(request, "texts/result.html", context)
