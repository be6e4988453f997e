from tests.example_project.conftest import Site


def test_the_pages_work_under_the_settings_of_the_site(site: Site) -> None:
    """The suite needs the site's own settings, so Django's runner runs it in a process."""
    done = site.manage("test", "tests.example_project.site_suite", "--noinput")

    assert done.returncode == 0, done.stderr
    assert "OK" in done.stderr


def test_the_migrations_match_the_models(site: Site) -> None:
    done = site.manage("makemigrations", "--check", "--dry-run")

    assert done.returncode == 0, done.stdout + done.stderr
