package stentor.lab.rivals.soap;

import jakarta.jws.WebMethod;
import jakarta.jws.WebParam;
import jakarta.jws.WebResult;
import jakarta.jws.WebService;
import jakarta.jws.soap.SOAPBinding;
import jakarta.xml.bind.annotation.XmlAccessType;
import jakarta.xml.bind.annotation.XmlAccessorType;
import jakarta.xml.bind.annotation.XmlElement;
import jakarta.xml.bind.annotation.XmlType;
import java.util.List;

/** The service, as JAX-WS has it; the wrappers are written out. */
@WebService(name = "Devices", targetNamespace = Devices.NAMESPACE)
@SOAPBinding(parameterStyle = SOAPBinding.ParameterStyle.BARE)
public interface Devices {
    String NAMESPACE = "urn:stentor:v1";

    @WebMethod(action = NAMESPACE + ":ShowDevice", operationName = "ShowDevice")
    @WebResult(name = "ShowDeviceResponse", targetNamespace = NAMESPACE)
    Shown show(@WebParam(name = "ShowDevice", targetNamespace = NAMESPACE) Asked asked);

    /** What is asked. */
    @XmlAccessorType(XmlAccessType.FIELD)
    class Asked {
        public String device;
        public String app;
    }

    /** What is answered. */
    @XmlAccessorType(XmlAccessType.FIELD)
    class Shown {
        @XmlElement(name = "return")
        public Device device;
    }

    /** The record. */
    @XmlAccessorType(XmlAccessType.FIELD)
    @XmlType(name = "Device", propOrder = {"id", "platform", "provider", "token_hint", "tags", "registered_at",
        "token_since", "state", "locale", "time_zone", "user"})
    class Device {
        public String id;
        public String platform;
        public String provider;
        public String token_hint;
        public List<String> tags;
        public String registered_at;
        public String token_since;
        public String state;
        public String locale;
        public String time_zone;
        public String user;
    }
}
