"""The site's pages, through Django's test client. `test_pages.py` runs this."""

import io
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import TestCase, TransactionTestCase, override_settings
from django.urls import reverse
from PIL import Image

from django_jobqueue import registry
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from example_project.files import cleanup, intake, jobs, steps
from example_project.files.models import Document, Kind, Result


def text_file(name: str = "note.txt", content: bytes = b"One line.\n") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content, content_type="text/plain")


def png_bytes(size: tuple[int, int] = (900, 600)) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", size, (10, 120, 90)).save(stream, "PNG")
    return stream.getvalue()


class SiteTest(TestCase):
    def setUp(self) -> None:
        media = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, media)
        self.enterContext(override_settings(MEDIA_ROOT=media))
        self.media = Path(media)

    def stored_files(self) -> list[Path]:
        return [path for path in self.media.rglob("*") if path.is_file()]

    def add(self, *files: SimpleUploadedFile) -> list[Document]:
        return intake.add_uploads(files or [text_file()]).documents

    def run_job(self, document: Document, step: str, attempts: int = 1) -> Any:
        job = Job.objects.get(subject_id=str(document.pk), type=step)
        job.attempts = attempts
        handler = registry.get(step)
        assert handler is not None
        return handler.process(job)


class PagesTest(SiteTest):
    def test_an_empty_site_says_what_to_do(self) -> None:
        answer = self.client.get("/")

        self.assertContains(answer, "No documents yet")
        self.assertNotContains(answer, "data-active")

    def test_an_upload_stores_documents_and_enqueues_their_jobs(self) -> None:
        files = [text_file(), SimpleUploadedFile("picture.png", png_bytes())]

        answer = self.client.post("/", {"uploads": files}, follow=True)

        self.assertContains(answer, "2 files stored, 9 jobs enqueued.")
        note, picture = Document.objects.order_by("pk")
        assert (note.kind, picture.kind) == (Kind.TEXT, Kind.IMAGE)
        types = Job.objects.filter(subject_type="document", subject_id=str(note.pk))
        assert set(types.values_list("type", flat=True)) == set(steps.STEPS_OF_KIND[Kind.TEXT])
        self.assertContains(answer, "data-active")
        self.assertContains(answer, "Waiting")

    def test_a_form_without_a_file_stores_nothing(self) -> None:
        answer = self.client.post("/", {})

        self.assertContains(answer, "Choose at least one file.", status_code=422)
        assert not Job.objects.exists()

    def test_one_empty_file_refuses_the_whole_form(self) -> None:
        answer = self.client.post("/", {"uploads": [text_file(), text_file("no.txt", b"")]})

        self.assertContains(answer, "One of the files is empty.", status_code=422)
        assert not Document.objects.exists()

    def test_a_file_over_the_limit_is_refused_by_name(self) -> None:
        with self.settings(MAX_UPLOAD_MIB=1):
            big = text_file("big.txt", b"x" * (1024 * 1024 + 1))
            answer = self.client.post("/", {"uploads": [big]})

        self.assertContains(answer, "big.txt is larger than 1 MiB.", status_code=422)
        assert not Document.objects.exists()

    def test_a_document_shows_findings_jobs_and_errors(self) -> None:
        (document,) = self.add()
        self.run_job(document, steps.TEXT_STATISTICS)
        Job.objects.filter(type=steps.ARCHIVE).update(attempts=1, last_error="Why: it <broke>")

        answer = self.client.get(document.get_absolute_url())

        self.assertContains(answer, "Frequent words")
        self.assertContains(answer, "Waits for a retry")
        self.assertContains(answer, "Why: it &lt;broke&gt;")
        self.assertContains(answer, '<meta http-equiv="refresh"')

    def test_a_page_without_active_jobs_does_not_refresh(self) -> None:
        (document,) = self.add()
        Job.objects.update(status=JobStatus.CANCELLED)

        for address in ("/", document.get_absolute_url(), "/jobs/"):
            answer = self.client.get(address)
            self.assertNotContains(answer, "data-active")
            self.assertNotContains(answer, "http-equiv")

    def test_process_again_enqueues_finished_steps_and_not_those_under_way(self) -> None:
        (document,) = self.add()
        Job.objects.filter(type=steps.CHECKSUM).update(status=JobStatus.SUCCEEDED)
        address = reverse("files:process", args=[document.pk])

        answer = self.client.post(address)

        self.assertRedirects(answer, document.get_absolute_url())
        assert Job.objects.filter(type=steps.CHECKSUM).count() == 2
        assert Job.objects.filter(type=steps.SCAN).count() == 1
        assert self.client.get(address).status_code == 405

    def test_the_list_counts_the_latest_job_of_each_step(self) -> None:
        (document,) = self.add()
        Job.objects.update(status=JobStatus.FAILED)
        self.assertContains(self.client.get("/"), "Failed <b>5</b>")

        self.client.post(reverse("files:process", args=[document.pk]))

        answer = self.client.get("/")
        self.assertContains(answer, "Waiting <b>5</b>")
        self.assertNotContains(answer, "Failed")

    def test_the_jobs_page_filters_by_state(self) -> None:
        self.add()
        Job.objects.filter(type=steps.SCAN).update(status=JobStatus.FAILED, last_error="E: no")

        self.assertContains(self.client.get("/jobs/"), "Text statistics")
        failed = self.client.get("/jobs/?status=failed")
        self.assertContains(failed, "E: no")
        self.assertNotContains(failed, "Text statistics")
        self.assertContains(self.client.get("/jobs/?status=nonsense"), "Text statistics")

    def test_a_job_outlives_its_document_and_its_handler(self) -> None:
        Job.objects.enqueue("gone.type", subject=("document", 999))
        Job.objects.enqueue("gone.other", subject=("document", "x"))
        Job.objects.enqueue("gone.third")

        answer = self.client.get("/jobs/")

        for name in ("gone.type", "gone.other", "gone.third"):
            self.assertContains(answer, name)

    def test_the_list_has_pages(self) -> None:
        self.add(*(text_file(f"{number}.txt") for number in range(26)))

        self.assertContains(self.client.get("/"), "Page 1 of 2")
        self.assertContains(self.client.get("/?page=2"), ">0.txt<")

    def test_the_number_of_queries_does_not_grow_with_the_documents(self) -> None:
        self.add(*(text_file(f"{number}.txt") for number in range(20)))

        with self.assertNumQueries(3):
            self.client.get("/")
        with self.assertNumQueries(3):
            self.client.get("/jobs/")

    def test_a_file_is_a_download_and_never_a_page(self) -> None:
        (document,) = self.add(text_file("page.html", b"<script>alert(1)</script>"))

        answer = self.client.get(reverse("files:download", args=[document.pk]))

        assert b"".join(answer) == b"<script>alert(1)</script>"
        assert answer["Content-Type"] == "application/octet-stream"
        assert "attachment" in answer["Content-Disposition"]
        assert answer["X-Content-Type-Options"] == "nosniff"

    def test_what_is_not_there_is_not_found(self) -> None:
        (document,) = self.add()
        document.upload.storage.delete(document.upload.name)

        for address in (
            "/documents/9999/",
            reverse("files:download", args=[document.pk]),
            reverse("files:thumbnail", args=[document.pk]),
        ):
            assert self.client.get(address).status_code == 404, address

    def test_no_page_has_anything_inline(self) -> None:
        (document,) = self.add()

        for address in ("/", document.get_absolute_url(), "/jobs/"):
            answer = self.client.get(address)
            assert "default-src 'self'" in answer["Content-Security-Policy"]
            body = answer.content.decode()
            assert "style=" not in body
            assert "<style" not in body
            assert "onclick" not in body
            assert body.count("<script") == body.count("<script src=")

    def test_the_admin_lists_documents_and_processes_them_again(self) -> None:
        (document,) = self.add()
        Job.objects.update(status=JobStatus.SUCCEEDED)
        self.client.force_login(get_user_model().objects.create_superuser("root"))
        address = reverse("admin:files_document_changelist")

        self.assertContains(self.client.get(address), "note.txt")
        change = reverse("admin:files_document_change", args=[document.pk])
        self.assertContains(self.client.get(change), reverse("files:download", args=[document.pk]))
        answer = self.client.post(
            address, {"action": "process_again", "_selected_action": [document.pk]}, follow=True
        )

        self.assertContains(answer, "5 jobs enqueued")
        assert Job.objects.filter(status=JobStatus.PENDING).count() == 5


class HandlersTest(SiteTest):
    def test_repeating_a_handler_replaces_its_result(self) -> None:
        (document,) = self.add()

        for _ in range(2):
            self.run_job(document, steps.CHECKSUM)
            self.run_job(document, steps.TEXT_STATISTICS)
            self.run_job(document, steps.SCAN)

        assert Result.objects.filter(document=document).count() == 3

    def test_text_statistics_count_lines_and_words(self) -> None:
        content = b"Red apple, green apple.\nDon't eat the apple\n"
        (document,) = self.add(text_file(content=content))

        data = self.run_job(document, steps.TEXT_STATISTICS)

        assert (data["lines"], data["words"]) == (2, 8)
        assert list(data["frequent_words"][0]) == ["apple", 3]

    def test_a_thumbnail_replaces_the_earlier_one(self) -> None:
        (document,) = self.add(SimpleUploadedFile("picture.png", png_bytes()))

        data = [self.run_job(document, steps.THUMBNAIL) for _ in range(2)]

        assert data[0] == {"format": "PNG", "width": 900, "height": 600}
        assert len(self.stored_files()) == 2
        answer = self.client.get(reverse("files:thumbnail", args=[document.pk]))
        assert answer["Content-Type"] == "image/png"
        with Image.open(io.BytesIO(b"".join(answer))) as image:
            assert max(image.size) <= 480

    def test_a_file_that_is_no_image_fails_for_good(self) -> None:
        for content in (b"no image", png_bytes()[:60]):
            (document,) = self.add(SimpleUploadedFile("picture.png", content))

            with self.assertRaisesMessage(jobs.PermanentError, "picture.png is not an image"):
                self.run_job(document, steps.THUMBNAIL)

    def test_the_archive_fails_once_for_every_third_document(self) -> None:
        documents = self.add(*(text_file(f"{number}.txt") for number in range(4)))

        for index, document in enumerate(documents):
            if index % 3 == 0:
                with self.assertRaisesMessage(jobs.ArchiveUnavailable, "did not answer"):
                    self.run_job(document, steps.ARCHIVE, attempts=1)
            self.run_job(document, steps.ARCHIVE, attempts=2 if index % 3 == 0 else 1)

    def test_a_deleted_document_and_a_missing_file_fail_for_good(self) -> None:
        (document,) = self.add()
        document.upload.storage.delete(document.upload.name)
        with self.assertRaisesMessage(jobs.PermanentError, "no longer there"):
            self.run_job(document, steps.CHECKSUM)

        pk = document.pk
        document.delete()
        document.pk = pk
        with self.assertRaisesMessage(jobs.PermanentError, "was deleted"):
            self.run_job(document, steps.CHECKSUM)

    def test_deleting_a_document_removes_its_files_and_leaves_folders_alone(self) -> None:
        cleanup.connect()
        (document,) = self.add()
        outside = self.media / "outside.txt"
        outside.write_text("mine")
        registered = intake.add_folder([outside], reason="test").documents[0]

        with self.captureOnCommitCallbacks(execute=True):
            document.delete()
            registered.delete()

        assert self.stored_files() == [outside]


class OneTransactionTest(TransactionTestCase):
    def test_a_failing_enqueue_leaves_no_document_no_job_and_no_file(self) -> None:
        with tempfile.TemporaryDirectory() as media, self.settings(MEDIA_ROOT=media):
            with (
                mock.patch.object(steps, "enqueue", side_effect=RuntimeError("broken")),
                self.assertRaisesMessage(RuntimeError, "broken"),
            ):
                intake.add_uploads([text_file(), text_file("two.txt")])

            assert not [path for path in Path(media).rglob("*") if path.is_file()]
        assert not Document.objects.exists()
        assert not Job.objects.exists()

    def test_documents_and_jobs_are_written_in_one_transaction(self) -> None:
        in_transaction = []
        enqueue = steps.enqueue

        def watched(documents: list[Document], *, reason: str) -> list[Job]:
            from django.db import connection

            found = enqueue(documents, reason=reason)
            in_transaction.append(connection.in_atomic_block)
            return found

        with (
            tempfile.TemporaryDirectory() as media,
            self.settings(MEDIA_ROOT=media),
            mock.patch.object(steps, "enqueue", watched),
        ):
            intake.add_uploads([text_file()])

        assert in_transaction == [True]
