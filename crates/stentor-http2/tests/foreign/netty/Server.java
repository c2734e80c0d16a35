import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.netty.handler.codec.http2.DefaultHttp2GoAwayFrame;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.Http2DataFrame;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2ResetFrame;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolConfig.Protocol;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectedListenerFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectorFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolNames;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.util.ReferenceCountUtil;
import java.io.File;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;

/** Answers every POST with its own body, over Netty's HTTP/2 and Java's TLS, and says afterwards what it has seen. */
public final class Server {
    private static final AtomicInteger REQUESTS = new AtomicInteger();
    private static final AtomicInteger CONNECTIONS = new AtomicInteger();
    private static final AtomicInteger RESETS = new AtomicInteger();

    /**
     * Takes the certificate, its key, the version of TLS, the stream limit, the window in bytes, and the number of
     * requests after which a connection is ended, or 0.
     */
    public static void main(String[] arguments) throws Exception {
        SslContext tls = SslContextBuilder.forServer(new File(arguments[0]), new File(arguments[1]))
                .protocols(arguments[2])
                .applicationProtocolConfig(new ApplicationProtocolConfig(Protocol.ALPN,
                        SelectorFailureBehavior.NO_ADVERTISE, SelectedListenerFailureBehavior.ACCEPT,
                        ApplicationProtocolNames.HTTP_2))
                .build();
        int maxStreams = Integer.parseInt(arguments[3]);
        Http2Settings settings = Http2Settings.defaultSettings()
                .maxConcurrentStreams(maxStreams)
                .initialWindowSize(Integer.parseInt(arguments[4]));
        int leaveAfter = Integer.parseInt(arguments[5]);
        Channel listener = new ServerBootstrap()
                .group(new NioEventLoopGroup(2))
                .channel(NioServerSocketChannel.class)
                .childHandler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        serve(channel, tls, settings, leaveAfter, maxStreams);
                    }
                })
                .bind("127.0.0.1", 0).sync().channel();
        System.out.println("port " + ((InetSocketAddress) listener.localAddress()).getPort());
        while (System.in.read() >= 0) { }
        System.exit(0); // the parent is gone
    }

    private static void serve(Channel channel, SslContext tls, Http2Settings settings, int leaveAfter,
            int maxStreams) {
        CONNECTIONS.incrementAndGet();
        AtomicInteger requests = new AtomicInteger();
        channel.pipeline().addLast(tls.newHandler(channel.alloc()));
        channel.pipeline().addLast(Http2FrameCodecBuilder.forServer().initialSettings(settings).build());
        channel.pipeline().addLast(new Http2MultiplexHandler(new ChannelInitializer<Channel>() {
            @Override
            protected void initChannel(Channel stream) {
                stream.pipeline().addLast(new Stream(requests, leaveAfter, maxStreams));
            }
        }));
    }

    /** One request. */
    private static final class Stream extends ChannelInboundHandlerAdapter {
        private final AtomicInteger requestsOfConnection;
        private final int leaveAfter;
        private final int maxStreams;
        private final ByteBuf body = Unpooled.buffer();
        private String path = "";

        Stream(AtomicInteger requestsOfConnection, int leaveAfter, int maxStreams) {
            this.requestsOfConnection = requestsOfConnection;
            this.leaveAfter = leaveAfter;
            this.maxStreams = maxStreams;
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object frame) {
            boolean ended = false;
            if (frame instanceof Http2HeadersFrame) {
                Http2HeadersFrame headers = (Http2HeadersFrame) frame;
                path = headers.headers().path().toString();
                ended = headers.isEndStream();
            } else if (frame instanceof Http2DataFrame) {
                Http2DataFrame data = (Http2DataFrame) frame;
                body.writeBytes(data.content());
                ended = data.isEndStream();
            }
            ReferenceCountUtil.release(frame);
            if (ended) {
                answer(context);
            }
        }

        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event instanceof Http2ResetFrame) {
                RESETS.incrementAndGet();
            }
            ReferenceCountUtil.release(event);
        }

        /**
         * Says that the connection ends, but lets in what may be under way: Netty breaks a connection off over DATA on
         * a stream whose HEADERS it has ignored after a GOAWAY, and then nothing could be said of the other streams.
         */
        private void leave(Channel connection) {
            connection.writeAndFlush(new DefaultHttp2GoAwayFrame(Http2Error.NO_ERROR).setExtraStreamIds(maxStreams));
        }

        private void answer(ChannelHandlerContext context) {
            Http2Headers headers = new DefaultHttp2Headers().status("200");
            if (path.equals("/totals")) {
                body.clear();
                String totals = REQUESTS + " " + CONNECTIONS + " " + RESETS;
                body.writeCharSequence(totals, StandardCharsets.US_ASCII);
            } else {
                REQUESTS.incrementAndGet();
                headers.set("x-path", path).set("x-long", path.repeat(200)); // Netty uses Huffman from 512 bytes on
                if (requestsOfConnection.incrementAndGet() == leaveAfter) {
                    leave(context.channel().parent());
                }
            }
            context.write(new DefaultHttp2HeadersFrame(headers));
            context.writeAndFlush(new DefaultHttp2DataFrame(body, true));
        }
    }
}
