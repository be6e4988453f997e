"""The pages of texts, through Django's test client. `test_texts.py` runs this."""

from django.test import TestCase
from django.utils.html import escape

from django_jobqueue.models import Job
from django_jobqueue.testing import drain
from example_project.texts.forms import LONGEST_TEXT
from example_project.texts.tasks import MOST_ATTEMPTS, describe

FORM = "/texts/"
TEXT = "The cat is on the mat.\nThe <b>dog</b> is in the house.\n"


class TextsTest(TestCase):
    def send(self, outages: int = 0, text: str = TEXT) -> str:
        """Fill in the form; return the address of the result."""
        answer = self.client.post(FORM, {"text": text, "outages": outages})
        assert answer.status_code == 302, answer.content
        return answer["Location"]

    def test_the_start_page_links_to_it(self) -> None:
        self.assertContains(self.client.get("/"), f'href="{FORM}"')
        self.assertContains(self.client.get(FORM), f'href="{FORM}" aria-current="page"')

    def test_a_text_that_waits_is_followed(self) -> None:
        address = self.send()

        answer = self.client.get(address)

        job = Job.objects.get()
        assert (job.type, job.queue) == ("example_project.texts.tasks.describe", "texts")
        self.assertContains(answer, "data-active")
        self.assertContains(answer, '<meta http-equiv="refresh"')
        self.assertContains(answer, "<code>READY</code>")
        self.assertContains(answer, "The &lt;b&gt;dog&lt;/b&gt;")

    def test_a_finished_text_shows_what_was_found_and_no_longer_refreshes(self) -> None:
        address = self.send()
        drain()

        answer = self.client.get(address)

        self.assertContains(answer, "<code>SUCCESSFUL</code>")
        self.assertContains(answer, "<dt>Language</dt><dd>English</dd>")
        self.assertContains(answer, "<dt>Attempts</dt><dd>1</dd>")
        self.assertContains(answer, f"<dt>Workers</dt><dd>{escape(Job.objects.get().worker)}</dd>")
        self.assertNotContains(answer, "data-active")
        self.assertNotContains(answer, "http-equiv")
        self.assertNotContains(answer, "Errors")

    def test_an_outage_shows_a_retry_that_waits_and_then_both(self) -> None:
        address = self.send(outages=1)
        drain(raise_errors=False)

        waiting = self.client.get(address)
        self.assertContains(waiting, "Waits for a retry")
        self.assertContains(waiting, "<code>READY</code>")
        self.assertContains(waiting, "data-active")
        self.assertContains(waiting, "did not answer attempt 1")

        drain(with_retries=True)
        done = self.client.get(address)
        self.assertContains(done, "<dt>Attempts</dt><dd>2</dd>")
        self.assertContains(done, "English")
        self.assertContains(done, "did not answer attempt 1")

    def test_a_text_that_fails_shows_each_error_with_its_class(self) -> None:
        address = self.send(outages=MOST_ATTEMPTS)
        drain(with_retries=True, raise_errors=False)

        answer = self.client.get(address)

        self.assertContains(answer, "<code>FAILED</code>")
        self.assertContains(
            answer, "<code>example_project.texts.tasks.DictionaryUnavailable</code>", MOST_ATTEMPTS
        )
        said = f"the simulated dictionary did not answer attempt {MOST_ATTEMPTS}"
        self.assertContains(answer, f'<p class="why bad">{said}</p>')
        self.assertContains(answer, "Traceback (most recent call last)", MOST_ATTEMPTS)
        self.assertNotContains(answer, "What it found")
        self.assertNotContains(answer, "data-active")

    def test_a_text_without_words_is_described_too(self) -> None:
        address = self.send(text="?!")
        drain()

        self.assertContains(self.client.get(address), "<dt>Frequent words</dt><dd>\N{EN DASH}</dd>")

    def test_a_form_that_is_wrong_enqueues_nothing(self) -> None:
        for data, message in (
            ({"outages": 0}, "Write or paste a text."),
            ({"text": "x" * (LONGEST_TEXT + 1), "outages": 0}, f"at most {LONGEST_TEXT}"),
            ({"text": "a\0b", "outages": 0}, "Null characters"),
            ({"text": TEXT, "outages": 7}, "Select a valid choice"),
        ):
            answer = self.client.post(FORM, data)
            self.assertContains(answer, message, status_code=422)

        assert not Job.objects.exists()

    def test_what_is_no_text_is_not_found(self) -> None:
        other = Job.objects.enqueue("gone.type")

        for pk in (other.pk, "01a22e97-398d-716e-985d-29fa39d33c2b", "7"):
            assert self.client.get(f"{FORM}{pk}/").status_code == 404, pk

    def test_no_page_has_anything_inline_and_every_field_has_its_label(self) -> None:
        address = self.send(outages=1)
        drain(raise_errors=False)

        for page in (FORM, address):
            answer = self.client.get(page)
            assert "default-src 'self'" in answer["Content-Security-Policy"]
            body = answer.content.decode()
            assert "style=" not in body
            assert "<style" not in body
            assert body.count("<script") == body.count("<script src=")
        form = self.client.get(FORM).content.decode()
        for field in ("id_text", "id_outages_0", "id_outages_1", "id_outages_2"):
            assert f'id="{field}"' in form
            assert f'for="{field}"' in form

    def test_a_call_that_somebody_else_made_and_cancelled_is_shown_too(self) -> None:
        result = describe.enqueue(text="From a shell.")
        Job.objects.cancel(Job.objects.filter(pk=result.id))

        answer = self.client.get(f"{FORM}{result.id}/")

        self.assertContains(answer, "From a shell.")
        self.assertContains(answer, "django_jobqueue.exceptions.JobCancelled")

    def test_the_jobs_page_lists_tasks_among_the_jobs(self) -> None:
        self.send()

        self.assertContains(self.client.get("/jobs/"), describe.module_path)
