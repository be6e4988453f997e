"""The pages: the documents, one document, the recent jobs."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Count
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus

from . import findings, intake, progress, steps
from .forms import UploadForm
from .models import Document

DOCUMENTS_A_PAGE = 25
RECENT_JOBS = 50


@require_http_methods(["GET", "HEAD", "POST"])
def documents(request: HttpRequest) -> HttpResponse:
    """List the documents, and take in uploads."""
    form = UploadForm()
    if request.method == "POST":
        form = UploadForm(request.POST, request.FILES)
        if form.is_valid():
            taken = intake.add_uploads(form.cleaned_data["uploads"])
            messages.success(
                request,
                f"{counted(taken.created, 'file')} stored, "
                f"{counted(len(taken.jobs), 'job')} enqueued.",
            )
            return redirect("files:documents")
    page = Paginator(Document.objects.all(), DOCUMENTS_A_PAGE).get_page(request.GET.get("page"))
    lines = progress.document_lines(page)
    context = {
        "form": form,
        "page": page,
        "lines": lines,
        "active": any(line.active for line in lines),
    }
    return render(request, "files/documents.html", context, status=422 if form.errors else 200)


@require_GET
def document(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what is known about one document, and its jobs, newest first."""
    found = get_object_or_404(Document, pk=pk)
    lines = [progress.Line(job, found) for job in reversed(progress.jobs_of([found]))]
    context = {
        "document": found,
        "findings": findings.findings_of(list(found.results.all())),
        "lines": lines[:RECENT_JOBS],
        "active": any(line.state in progress.ACTIVE for line in lines),
    }
    return render(request, "files/document.html", context)


@require_POST
def process_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Enqueue every step of the document once more; what is under way is not doubled."""
    with transaction.atomic():
        found = get_object_or_404(Document, pk=pk)
        jobs = steps.enqueue([found], reason="process again")
    messages.success(request, f"{counted(len(jobs), 'job')} enqueued or already under way.")
    return redirect(found)


@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    """List the most recent jobs, of every state or of one."""
    status = request.GET.get("status", "")
    chosen = Job.objects.defer("payload", "result").order_by("-id")
    if status in JobStatus.values:
        chosen = chosen.filter(status=status)
    else:
        status = ""
    found = Job.objects.order_by().values_list("status").annotate(number=Count("id"))
    counts = dict(found)
    lines = progress.job_lines(chosen[:RECENT_JOBS])
    context = {
        "lines": lines,
        "status": status,
        "total": sum(counts.values()),
        "counts": [(value, label, counts.get(value, 0)) for value, label in JobStatus.choices],
        "active": any(counts.get(value) for value in (JobStatus.PENDING, JobStatus.RUNNING)),
        "limit": RECENT_JOBS,
    }
    return render(request, "files/jobs.html", context)


@require_GET
def download(request: HttpRequest, pk: int) -> FileResponse:
    """Send the file as a download: whatever it holds, the browser must not run it here."""
    found = get_object_or_404(Document, pk=pk)
    try:
        stream = found.open()
    except FileNotFoundError:
        raise Http404("The file is no longer there.") from None
    return FileResponse(
        stream,
        as_attachment=True,
        filename=found.name,
        content_type="application/octet-stream",
    )


@require_GET
def thumbnail(request: HttpRequest, pk: int) -> FileResponse:
    """Send the reduced picture, which a job made and so is a PNG."""
    found = get_object_or_404(Document.objects.exclude(thumbnail=""), pk=pk)
    try:
        stream = found.thumbnail.open("rb")
    except FileNotFoundError:
        raise Http404("The thumbnail is no longer there.") from None
    return FileResponse(stream, content_type="image/png")


def counted(number: int, noun: str) -> str:
    """Return the number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
