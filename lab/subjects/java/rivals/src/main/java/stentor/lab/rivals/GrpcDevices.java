package stentor.lab.rivals;

import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import stentor.v1.Stentor.Device;
import stentor.v1.Stentor.ShowDeviceRequest;

/**
 * grpc-java on Netty, by the description that the measured server prints of itself. The service is bound by hand, as
 * the plugin of protoc would bind it, since that is a program of its own for each processor.
 */
final class GrpcDevices {
    private static final String SERVICE = "stentor.v1.Devices";

    private GrpcDevices() {}

    static String version() {
        return String.valueOf(NettyServerBuilder.class.getPackage().getImplementationVersion());
    }

    static int serve(InetSocketAddress bind, KnownDevice known) throws Exception {
        MethodDescriptor<ShowDeviceRequest, Device> show = MethodDescriptor.<ShowDeviceRequest, Device>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, "ShowDevice"))
            .setRequestMarshaller(ProtoUtils.marshaller(ShowDeviceRequest.getDefaultInstance()))
            .setResponseMarshaller(ProtoUtils.marshaller(Device.getDefaultInstance()))
            .build();
        ServerServiceDefinition service = ServerServiceDefinition.builder(SERVICE)
            .addMethod(show, ServerCalls.asyncUnaryCall((request, answer) -> answer(request, answer, known)))
            .build();
        // Answered where it is read: its quickest way, because nothing here waits.
        Server server = NettyServerBuilder.forAddress(bind).directExecutor().addService(service).build();
        return server.start().getPort();
    }

    private static void answer(ShowDeviceRequest request, StreamObserver<Device> answer, KnownDevice known) {
        known.demand(request.getDevice());
        answer.onNext(Device.newBuilder().setId(known.id).setPlatform(known.platform).setProvider(known.provider)
            .setTokenHint(known.tokenHint).addAllTags(known.tags).setRegisteredAt(known.registeredAt)
            .setTokenSince(known.tokenSince).setState(known.state).setLocale(known.locale)
            .setTimeZone(known.timeZone).setUser(known.user).build());
        answer.onCompleted();
    }
}
