"""What holds for all tests: no test fails for being slow on a busy machine."""

from hypothesis import HealthCheck, settings

settings.register_profile("gpustow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gpustow")
