"""Telling kubelet that a plugin is there, and what its refusals mean.

Kubelet answers Register with plain errors: all have the code UNKNOWN and differ by their text (kubelet 1.36). Two of
them no retry will cure. Before it answers, kubelet 1.25 and newer dials the plugin, for up to 10 s, and asks for its
options; so the plugin must be serving, and the deadline must leave kubelet that time.
"""

from dataclasses import dataclass
from pathlib import Path

import grpc

from gpustow.errors import ApiVersionRefused, RegistrationError, RegistrationRefused
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import DevicePluginOptions, RegisterRequest
from gpustow.kubelet.protocol.services import API_VERSION, RegistrationCalls, unix_channel

REGISTER_SECONDS = 20.0
"""The deadline of Register: kubelet's dial may take 10 s, and then it calls us. Never set it below 15."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What kubelet is told: the resource, the file name of the socket that serves it, and the plugin's options.

    The options are the same that GetDevicePluginOptions answers: kubelet 1.24 and older read these, newer ones those.
    """

    resource: str
    endpoint: str
    options: DevicePluginOptions

    def request(self) -> RegisterRequest:
        """The message."""
        return RegisterRequest(
            version=API_VERSION, endpoint=self.endpoint, resource_name=self.resource, options=self.options
        )


async def register(kubelet: Path, registration: Registration, *, seconds: float = REGISTER_SECONDS) -> None:
    """Registers with the kubelet that serves the socket `kubelet`, within `seconds`.

    Raises RegistrationError if it may work later, RegistrationRefused if this resource will never be taken, and
    ApiVersionRefused if none will.
    """
    async with unix_channel(kubelet) as channel:
        try:
            await RegistrationCalls(channel).register(registration.request(), timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise _meaning(registration.resource, error) from error


def _meaning(resource: str, error: grpc.aio.AioRpcError) -> RegistrationError:
    text = error.details() or "no reason given"
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return RegistrationError(resource, f"kubelet does not answer on its socket ({text})")
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return RegistrationError(resource, "kubelet did not answer in time")
    if "is not supported by kubelet" in text:
        advice = f"This kubelet does not speak {API_VERSION} of the device plugin API."
        return ApiVersionRefused(resource, text, advice=advice)
    if "the ResourceName" in text and "is invalid" in text:
        return RegistrationRefused(resource, text, advice="Give the resource another name.")
    if "failed to dial device plugin" in text:
        return RegistrationError(resource, f"kubelet cannot reach the plugin's socket ({text})")
    return RegistrationError(resource, text)
