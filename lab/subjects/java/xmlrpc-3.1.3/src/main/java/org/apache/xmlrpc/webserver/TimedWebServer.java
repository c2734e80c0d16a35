package org.apache.xmlrpc.webserver;

import java.io.OutputStream;
import java.io.InputStream;
import java.net.InetAddress;
import org.apache.xmlrpc.XmlRpcException;
import org.apache.xmlrpc.XmlRpcRequest;
import org.apache.xmlrpc.common.ServerStreamConnection;
import org.apache.xmlrpc.common.XmlRpcStreamRequestConfig;
import org.apache.xmlrpc.server.XmlRpcStreamServer;
import org.apache.xmlrpc.util.ThreadPool;
import stentor.lab.Samples;

/** The library's own server with the times of its phases. It is in this package since the server's classes can only be extended here. */
public final class TimedWebServer extends WebServer {
    private final Samples samples;

    public TimedWebServer(int port, InetAddress address, Samples samples) {
        super(port, address);
        this.samples = samples;
        ((Timed) server).samples = samples;
    }

    @Override
    protected XmlRpcStreamServer newXmlRpcStreamServer() {
        return new Timed();
    }

    private static final class Timed extends ConnectionServer {
        private Samples samples;

        @Override
        protected XmlRpcRequest getRequest(XmlRpcStreamRequestConfig config, InputStream stream)
                throws XmlRpcException {
            return super.getRequest(config, samples.begin().count(stream));
        }

        @Override
        public void execute(XmlRpcStreamRequestConfig config, ServerStreamConnection connection)
                throws XmlRpcException {
            try {
                super.execute(config, connection);
                samples.current().streamsOut(); // It has sent the answer before it says that it is written.
                samples.current().done(true);
            } finally {
                samples.current().done(false);
            }
        }

        @Override
        protected void writeError(XmlRpcStreamRequestConfig config, OutputStream stream, Throwable error)
                throws XmlRpcException {
            super.writeError(config, stream, error);
            samples.current().done(false);
        }
    }
}
